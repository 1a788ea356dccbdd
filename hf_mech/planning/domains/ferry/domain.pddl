; A ferry that carries one car at a time from port to port.
(define (domain ferry)
  (:requirements :strips :typing :negative-preconditions :equality)
  (:types car port)
  (:predicates
    (at ?car - car ?port - port)
    (on ?car - car)
    (at-ferry ?port - port)
    (empty-ferry))

  (:action sail
    :parameters (?from ?to - port)
    :precondition (and (not (= ?from ?to)) (at-ferry ?from))
    :effect (and (at-ferry ?to) (not (at-ferry ?from))))

  (:action board
    :parameters (?car - car ?port - port)
    :precondition (and (at ?car ?port) (at-ferry ?port) (empty-ferry))
    :effect (and (on ?car) (not (at ?car ?port)) (not (empty-ferry))))

  (:action debark
    :parameters (?car - car ?port - port)
    :precondition (and (on ?car) (at-ferry ?port))
    :effect (and (at ?car ?port) (empty-ferry) (not (on ?car)))))
