; A robot with grippers that carries balls between rooms.
(define (domain gripper)
  (:requirements :strips :typing :negative-preconditions :equality)
  (:types room ball gripper)
  (:predicates
    (at-robot ?room - room)
    (at ?ball - ball ?room - room)
    (free ?gripper - gripper)
    (carry ?ball - ball ?gripper - gripper))

  (:action move
    :parameters (?from ?to - room)
    :precondition (and (not (= ?from ?to)) (at-robot ?from))
    :effect (and (at-robot ?to) (not (at-robot ?from))))

  (:action pick
    :parameters (?ball - ball ?room - room ?gripper - gripper)
    :precondition (and (at ?ball ?room) (at-robot ?room) (free ?gripper))
    :effect (and (carry ?ball ?gripper) (not (at ?ball ?room)) (not (free ?gripper))))

  (:action drop
    :parameters (?ball - ball ?room - room ?gripper - gripper)
    :precondition (and (carry ?ball ?gripper) (at-robot ?room))
    :effect (and (at ?ball ?room) (free ?gripper) (not (carry ?ball ?gripper)))))
