; The sliding-tile puzzle.
(define (domain npuzzle)
  (:requirements :strips :typing)
  (:types tile position)
  (:predicates
    (at ?tile - tile ?position - position)
    (empty ?position - position)
    (neighbour ?from ?to - position))

  (:action move
    :parameters (?tile - tile ?from ?to - position)
    :precondition (and (at ?tile ?from) (empty ?to) (neighbour ?from ?to))
    :effect (and (at ?tile ?to) (empty ?from) (not (at ?tile ?from)) (not (empty ?to)))))
