; Aircraft that carry people between cities and use fuel, more of it if they zoom.
(define (domain zenotravel)
  (:requirements :strips :typing)
  (:types
    locatable city flevel - object
    aircraft person - locatable)
  (:predicates
    (at ?thing - locatable ?city - city)
    (in ?person - person ?aircraft - aircraft)
    (fuel-level ?aircraft - aircraft ?level - flevel)
    (next ?less ?more - flevel))

  (:action board
    :parameters (?person - person ?aircraft - aircraft ?city - city)
    :precondition (and (at ?person ?city) (at ?aircraft ?city))
    :effect (and (in ?person ?aircraft) (not (at ?person ?city))))

  (:action debark
    :parameters (?person - person ?aircraft - aircraft ?city - city)
    :precondition (and (in ?person ?aircraft) (at ?aircraft ?city))
    :effect (and (at ?person ?city) (not (in ?person ?aircraft))))

  (:action fly
    :parameters (?aircraft - aircraft ?from ?to - city ?before ?after - flevel)
    :precondition (and (at ?aircraft ?from) (fuel-level ?aircraft ?before) (next ?after ?before))
    :effect (and (at ?aircraft ?to) (fuel-level ?aircraft ?after) (not (at ?aircraft ?from))
                 (not (fuel-level ?aircraft ?before))))

  (:action zoom
    :parameters (?aircraft - aircraft ?from ?to - city ?before ?between ?after - flevel)
    :precondition (and (at ?aircraft ?from) (fuel-level ?aircraft ?before) (next ?between ?before)
                       (next ?after ?between))
    :effect (and (at ?aircraft ?to) (fuel-level ?aircraft ?after) (not (at ?aircraft ?from))
                 (not (fuel-level ?aircraft ?before))))

  (:action refuel
    :parameters (?aircraft - aircraft ?city - city ?before ?after - flevel)
    :precondition (and (fuel-level ?aircraft ?before) (next ?before ?after) (at ?aircraft ?city))
    :effect (and (fuel-level ?aircraft ?after) (not (fuel-level ?aircraft ?before)))))
