; A robot on a grid whose locked places need keys of the right shape.
(define (domain grid)
  (:requirements :strips :typing)
  (:types place shape key)
  (:predicates
    (conn ?from ?to - place)
    (key-shape ?key - key ?shape - shape)
    (lock-shape ?place - place ?shape - shape)
    (at ?key - key ?place - place)
    (at-robot ?place - place)
    (locked ?place - place)
    (open ?place - place)
    (holding ?key - key)
    (arm-empty))

  (:action unlock
    :parameters (?here ?there - place ?key - key ?shape - shape)
    :precondition (and (conn ?here ?there) (key-shape ?key ?shape) (lock-shape ?there ?shape) (at-robot ?here)
                       (locked ?there) (holding ?key))
    :effect (and (open ?there) (not (locked ?there))))

  (:action move
    :parameters (?from ?to - place)
    :precondition (and (at-robot ?from) (conn ?from ?to) (open ?to))
    :effect (and (at-robot ?to) (not (at-robot ?from))))

  (:action pickup
    :parameters (?place - place ?key - key)
    :precondition (and (at-robot ?place) (at ?key ?place) (arm-empty))
    :effect (and (holding ?key) (not (at ?key ?place)) (not (arm-empty))))

  (:action pickup-and-loose
    :parameters (?place - place ?taken ?left - key)
    :precondition (and (at-robot ?place) (holding ?left) (at ?taken ?place))
    :effect (and (holding ?taken) (at ?left ?place) (not (holding ?left)) (not (at ?taken ?place))))

  (:action putdown
    :parameters (?place - place ?key - key)
    :precondition (and (at-robot ?place) (holding ?key))
    :effect (and (arm-empty) (at ?key ?place) (not (holding ?key)))))
