; Cars at curbs, with room for one car behind each. The competition lets a car park behind itself, from where it
; never returns; here the two cars differ.
(define (domain parking)
  (:requirements :strips :typing :negative-preconditions :equality)
  (:types car curb)
  (:predicates
    (at-curb ?car - car)
    (at-curb-num ?car - car ?curb - curb)
    (behind-car ?car ?front - car)
    (car-clear ?car - car)
    (curb-clear ?curb - curb))

  (:action move-curb-to-curb
    :parameters (?car - car ?from ?to - curb)
    :precondition (and (car-clear ?car) (curb-clear ?to) (at-curb-num ?car ?from))
    :effect (and (curb-clear ?from) (at-curb-num ?car ?to) (not (curb-clear ?to)) (not (at-curb-num ?car ?from))))

  (:action move-curb-to-car
    :parameters (?car - car ?from - curb ?front - car)
    :precondition (and (not (= ?car ?front)) (car-clear ?car) (car-clear ?front) (at-curb-num ?car ?from)
                       (at-curb ?front))
    :effect (and (curb-clear ?from) (behind-car ?car ?front) (not (car-clear ?front)) (not (at-curb-num ?car ?from))
                 (not (at-curb ?car))))

  (:action move-car-to-curb
    :parameters (?car ?from - car ?to - curb)
    :precondition (and (car-clear ?car) (curb-clear ?to) (behind-car ?car ?from))
    :effect (and (car-clear ?from) (at-curb-num ?car ?to) (at-curb ?car) (not (curb-clear ?to))
                 (not (behind-car ?car ?from))))

  (:action move-car-to-car
    :parameters (?car ?from ?front - car)
    :precondition (and (car-clear ?car) (car-clear ?front) (behind-car ?car ?from) (at-curb ?front))
    :effect (and (car-clear ?from) (behind-car ?car ?front) (not (car-clear ?front)) (not (behind-car ?car ?from)))))
