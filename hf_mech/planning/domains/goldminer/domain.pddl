; A robot that clears rock with bombs and a laser, which also destroys gold, and picks up gold.
(define (domain goldminer)
  (:requirements :strips :typing)
  (:types loc)
  (:predicates
    (robot-at ?loc - loc)
    (bomb-at ?loc - loc)
    (laser-at ?loc - loc)
    (soft-rock-at ?loc - loc)
    (hard-rock-at ?loc - loc)
    (gold-at ?loc - loc)
    (clear ?loc - loc)
    (connected ?from ?to - loc)
    (arm-empty)
    (holds-bomb)
    (holds-laser)
    (holds-gold))

  (:action move
    :parameters (?from ?to - loc)
    :precondition (and (robot-at ?from) (connected ?from ?to) (clear ?to))
    :effect (and (robot-at ?to) (not (robot-at ?from))))

  (:action pickup-laser
    :parameters (?loc - loc)
    :precondition (and (robot-at ?loc) (laser-at ?loc) (arm-empty))
    :effect (and (holds-laser) (not (arm-empty)) (not (laser-at ?loc))))

  (:action pickup-bomb
    :parameters (?loc - loc)
    :precondition (and (robot-at ?loc) (bomb-at ?loc) (arm-empty))
    :effect (and (holds-bomb) (not (arm-empty))))

  (:action putdown-laser
    :parameters (?loc - loc)
    :precondition (and (robot-at ?loc) (holds-laser))
    :effect (and (arm-empty) (laser-at ?loc) (not (holds-laser))))

  (:action detonate-bomb
    :parameters (?loc ?rock - loc)
    :precondition (and (robot-at ?loc) (holds-bomb) (connected ?loc ?rock) (soft-rock-at ?rock))
    :effect (and (arm-empty) (clear ?rock) (not (holds-bomb)) (not (soft-rock-at ?rock))))

  (:action fire-laser
    :parameters (?loc ?rock - loc)
    :precondition (and (robot-at ?loc) (holds-laser) (connected ?loc ?rock))
    :effect (and (clear ?rock) (not (soft-rock-at ?rock)) (not (gold-at ?rock)) (not (hard-rock-at ?rock))))

  (:action pick-gold
    :parameters (?loc - loc)
    :precondition (and (robot-at ?loc) (arm-empty) (gold-at ?loc))
    :effect (and (holds-gold) (not (arm-empty)))))
