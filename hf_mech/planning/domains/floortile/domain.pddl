; Robots that paint the tiles of a floor above and below them, and cannot walk over paint.
(define (domain floortile)
  (:requirements :strips :typing)
  (:types robot tile color)
  (:predicates
    (robot-at ?robot - robot ?tile - tile)
    (up ?upper ?lower - tile)
    (down ?lower ?upper - tile)
    (right ?right ?left - tile)
    (left ?left ?right - tile)
    (clear ?tile - tile)
    (painted ?tile - tile ?color - color)
    (robot-has ?robot - robot ?color - color)
    (available-color ?color - color))

  (:action change-color
    :parameters (?robot - robot ?from ?to - color)
    :precondition (and (robot-has ?robot ?from) (available-color ?to))
    :effect (and (robot-has ?robot ?to) (not (robot-has ?robot ?from))))

  (:action paint-up
    :parameters (?robot - robot ?there ?here - tile ?color - color)
    :precondition (and (robot-has ?robot ?color) (robot-at ?robot ?here) (up ?there ?here) (clear ?there))
    :effect (and (painted ?there ?color) (not (clear ?there))))

  (:action paint-down
    :parameters (?robot - robot ?there ?here - tile ?color - color)
    :precondition (and (robot-has ?robot ?color) (robot-at ?robot ?here) (down ?there ?here) (clear ?there))
    :effect (and (painted ?there ?color) (not (clear ?there))))

  (:action move-up
    :parameters (?robot - robot ?from ?to - tile)
    :precondition (and (robot-at ?robot ?from) (up ?to ?from) (clear ?to))
    :effect (and (robot-at ?robot ?to) (clear ?from) (not (robot-at ?robot ?from)) (not (clear ?to))))

  (:action move-down
    :parameters (?robot - robot ?from ?to - tile)
    :precondition (and (robot-at ?robot ?from) (down ?to ?from) (clear ?to))
    :effect (and (robot-at ?robot ?to) (clear ?from) (not (robot-at ?robot ?from)) (not (clear ?to))))

  (:action move-right
    :parameters (?robot - robot ?from ?to - tile)
    :precondition (and (robot-at ?robot ?from) (right ?to ?from) (clear ?to))
    :effect (and (robot-at ?robot ?to) (clear ?from) (not (robot-at ?robot ?from)) (not (clear ?to))))

  (:action move-left
    :parameters (?robot - robot ?from ?to - tile)
    :precondition (and (robot-at ?robot ?from) (left ?to ?from) (clear ?to))
    :effect (and (robot-at ?robot ?to) (clear ?from) (not (robot-at ?robot ?from)) (not (clear ?to)))))
