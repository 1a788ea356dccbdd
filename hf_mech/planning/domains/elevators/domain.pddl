; Slow and fast elevators that stop at some floors and hold so many passengers. Floors and numbers are counts.
(define (domain elevators)
  (:requirements :strips :typing)
  (:types
    elevator passenger count - object
    slow-elevator fast-elevator - elevator)
  (:predicates
    (passenger-at ?passenger - passenger ?floor - count)
    (boarded ?passenger - passenger ?lift - elevator)
    (lift-at ?lift - elevator ?floor - count)
    (reachable-floor ?lift - elevator ?floor - count)
    (above ?lower ?upper - count)
    (passengers ?lift - elevator ?number - count)
    (can-hold ?lift - elevator ?number - count)
    (next ?less ?more - count))

  (:action move-up-slow
    :parameters (?lift - slow-elevator ?from ?to - count)
    :precondition (and (lift-at ?lift ?from) (above ?from ?to) (reachable-floor ?lift ?to))
    :effect (and (lift-at ?lift ?to) (not (lift-at ?lift ?from))))

  (:action move-down-slow
    :parameters (?lift - slow-elevator ?from ?to - count)
    :precondition (and (lift-at ?lift ?from) (above ?to ?from) (reachable-floor ?lift ?to))
    :effect (and (lift-at ?lift ?to) (not (lift-at ?lift ?from))))

  (:action move-up-fast
    :parameters (?lift - fast-elevator ?from ?to - count)
    :precondition (and (lift-at ?lift ?from) (above ?from ?to) (reachable-floor ?lift ?to))
    :effect (and (lift-at ?lift ?to) (not (lift-at ?lift ?from))))

  (:action move-down-fast
    :parameters (?lift - fast-elevator ?from ?to - count)
    :precondition (and (lift-at ?lift ?from) (above ?to ?from) (reachable-floor ?lift ?to))
    :effect (and (lift-at ?lift ?to) (not (lift-at ?lift ?from))))

  (:action board
    :parameters (?passenger - passenger ?lift - elevator ?floor ?before ?after - count)
    :precondition (and (lift-at ?lift ?floor) (passenger-at ?passenger ?floor) (passengers ?lift ?before)
                       (next ?before ?after) (can-hold ?lift ?after))
    :effect (and (boarded ?passenger ?lift) (passengers ?lift ?after) (not (passenger-at ?passenger ?floor))
                 (not (passengers ?lift ?before))))

  (:action leave
    :parameters (?passenger - passenger ?lift - elevator ?floor ?before ?after - count)
    :precondition (and (lift-at ?lift ?floor) (boarded ?passenger ?lift) (passengers ?lift ?before)
                       (next ?after ?before))
    :effect (and (passenger-at ?passenger ?floor) (passengers ?lift ?after) (not (boarded ?passenger ?lift))
                 (not (passengers ?lift ?before)))))
