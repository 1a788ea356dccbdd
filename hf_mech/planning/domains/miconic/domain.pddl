; A lift that takes passengers from their origin to their destination. Boarding twice is possible, as in the
; competition: `board` does not ask whether the passenger is still waiting.
(define (domain miconic)
  (:requirements :strips :typing)
  (:types passenger floor)
  (:predicates
    (origin ?passenger - passenger ?floor - floor)
    (destin ?passenger - passenger ?floor - floor)
    (above ?lower ?upper - floor)
    (boarded ?passenger - passenger)
    (served ?passenger - passenger)
    (lift-at ?floor - floor))

  (:action board
    :parameters (?floor - floor ?passenger - passenger)
    :precondition (and (lift-at ?floor) (origin ?passenger ?floor))
    :effect (boarded ?passenger))

  (:action depart
    :parameters (?floor - floor ?passenger - passenger)
    :precondition (and (lift-at ?floor) (destin ?passenger ?floor) (boarded ?passenger))
    :effect (and (served ?passenger) (not (boarded ?passenger))))

  (:action up
    :parameters (?from ?to - floor)
    :precondition (and (lift-at ?from) (above ?from ?to))
    :effect (and (lift-at ?to) (not (lift-at ?from))))

  (:action down
    :parameters (?from ?to - floor)
    :precondition (and (lift-at ?from) (above ?to ?from))
    :effect (and (lift-at ?to) (not (lift-at ?from)))))
