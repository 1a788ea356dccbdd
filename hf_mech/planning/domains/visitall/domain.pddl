; A robot that walks over a graph and marks the places that it has seen.
(define (domain visitall)
  (:requirements :strips :typing)
  (:types place)
  (:predicates
    (connected ?from ?to - place)
    (at-robot ?place - place)
    (visited ?place - place))

  (:action move
    :parameters (?from ?to - place)
    :precondition (and (at-robot ?from) (connected ?from ?to))
    :effect (and (at-robot ?to) (visited ?to) (not (at-robot ?from)))))
