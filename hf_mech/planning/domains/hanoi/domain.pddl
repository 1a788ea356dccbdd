; The towers of Hanoi: discs on pegs, and never a larger disc on a smaller one.
(define (domain hanoi)
  (:requirements :strips :typing)
  (:types disc peg - place)
  (:predicates
    (smaller ?disc - disc ?place - place)
    (on ?disc - disc ?place - place)
    (clear ?place - place))

  (:action move
    :parameters (?disc - disc ?from ?to - place)
    :precondition (and (smaller ?disc ?to) (on ?disc ?from) (clear ?disc) (clear ?to))
    :effect (and (clear ?from) (on ?disc ?to) (not (on ?disc ?from)) (not (clear ?to)))))
