; A person who walks over a grid and pushes boxes.
(define (domain sokoban)
  (:requirements :strips :typing)
  (:types cell box)
  (:predicates
    (next ?from ?to - cell)
    (line ?from ?over ?to - cell)
    (here ?cell - cell)
    (box-at ?box - box ?cell - cell)
    (clear ?cell - cell))

  (:action walk
    :parameters (?from ?to - cell)
    :precondition (and (next ?from ?to) (here ?from) (clear ?to))
    :effect (and (here ?to) (clear ?from) (not (here ?from)) (not (clear ?to))))

  (:action push
    :parameters (?box - box ?from ?over ?to - cell)
    :precondition (and (line ?from ?over ?to) (here ?from) (box-at ?box ?over) (clear ?to))
    :effect (and (here ?over) (box-at ?box ?to) (clear ?from)
                 (not (here ?from)) (not (box-at ?box ?over)) (not (clear ?to)))))
