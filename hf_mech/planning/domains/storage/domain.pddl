; Hoists that carry crates between containers outside and the areas of depots.
(define (domain storage)
  (:requirements :strips :typing)
  (:types
    hoist surface place - object
    container depot - place
    storearea transitarea - area
    area crate - surface)
  (:predicates
    (clear ?area - storearea)
    (in ?thing - surface ?place - place)
    (available ?hoist - hoist)
    (lifting ?hoist - hoist ?crate - crate)
    (at ?hoist - hoist ?area - area)
    (on ?crate - crate ?area - storearea)
    (connected ?from ?to - area))

  (:action lift
    :parameters (?hoist - hoist ?crate - crate ?area - storearea ?stand - area ?place - place)
    :precondition (and (connected ?area ?stand) (at ?hoist ?stand) (available ?hoist) (on ?crate ?area)
                       (in ?area ?place))
    :effect (and (clear ?area) (lifting ?hoist ?crate) (not (on ?crate ?area)) (not (available ?hoist))
                 (not (in ?crate ?place))))

  (:action drop
    :parameters (?hoist - hoist ?crate - crate ?area - storearea ?stand - area ?place - place)
    :precondition (and (connected ?area ?stand) (at ?hoist ?stand) (lifting ?hoist ?crate) (clear ?area)
                       (in ?area ?place))
    :effect (and (available ?hoist) (on ?crate ?area) (in ?crate ?place) (not (lifting ?hoist ?crate))
                 (not (clear ?area))))

  (:action move
    :parameters (?hoist - hoist ?from ?to - storearea)
    :precondition (and (at ?hoist ?from) (clear ?to) (connected ?from ?to))
    :effect (and (at ?hoist ?to) (clear ?from) (not (at ?hoist ?from)) (not (clear ?to))))

  (:action go-out
    :parameters (?hoist - hoist ?from - storearea ?to - transitarea)
    :precondition (and (at ?hoist ?from) (connected ?from ?to))
    :effect (and (at ?hoist ?to) (clear ?from) (not (at ?hoist ?from))))

  (:action go-in
    :parameters (?hoist - hoist ?from - transitarea ?to - storearea)
    :precondition (and (at ?hoist ?from) (connected ?from ?to) (clear ?to))
    :effect (and (at ?hoist ?to) (not (at ?hoist ?from)) (not (clear ?to)))))
