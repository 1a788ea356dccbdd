; Vehicles with room for so many packages, on roads.
(define (domain transport)
  (:requirements :strips :typing)
  (:types
    location locatable capacity-number - object
    vehicle package - locatable)
  (:predicates
    (road ?from ?to - location)
    (at ?thing - locatable ?location - location)
    (in ?package - package ?vehicle - vehicle)
    (capacity ?vehicle - vehicle ?number - capacity-number)
    (capacity-predecessor ?less ?more - capacity-number))

  (:action drive
    :parameters (?vehicle - vehicle ?from ?to - location)
    :precondition (and (at ?vehicle ?from) (road ?from ?to))
    :effect (and (at ?vehicle ?to) (not (at ?vehicle ?from))))

  (:action pick-up
    :parameters (?vehicle - vehicle ?location - location ?package - package ?less ?more - capacity-number)
    :precondition (and (at ?vehicle ?location) (at ?package ?location) (capacity-predecessor ?less ?more)
                       (capacity ?vehicle ?more))
    :effect (and (in ?package ?vehicle) (capacity ?vehicle ?less) (not (at ?package ?location))
                 (not (capacity ?vehicle ?more))))

  (:action drop
    :parameters (?vehicle - vehicle ?location - location ?package - package ?less ?more - capacity-number)
    :precondition (and (at ?vehicle ?location) (in ?package ?vehicle) (capacity-predecessor ?less ?more)
                       (capacity ?vehicle ?less))
    :effect (and (at ?package ?location) (capacity ?vehicle ?more) (not (in ?package ?vehicle))
                 (not (capacity ?vehicle ?less)))))
