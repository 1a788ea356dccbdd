; Trucks that carry packages over roads; each road costs so much fuel, and there is no more of it.
(define (domain nomystery)
  (:requirements :strips :typing)
  (:types
    location fuellevel locatable - object
    package truck - locatable)
  (:predicates
    (connected ?from ?to - location)
    (at ?thing - locatable ?location - location)
    (in ?package - package ?truck - truck)
    (fuel ?truck - truck ?level - fuellevel)
    (fuelcost ?level - fuellevel ?from ?to - location)
    (sum ?a ?b ?total - fuellevel))

  (:action load
    :parameters (?package - package ?truck - truck ?location - location)
    :precondition (and (at ?truck ?location) (at ?package ?location))
    :effect (and (in ?package ?truck) (not (at ?package ?location))))

  (:action unload
    :parameters (?package - package ?truck - truck ?location - location)
    :precondition (and (at ?truck ?location) (in ?package ?truck))
    :effect (and (at ?package ?location) (not (in ?package ?truck))))

  (:action drive
    :parameters (?truck - truck ?from ?to - location ?after ?cost ?before - fuellevel)
    :precondition (and (connected ?from ?to) (fuelcost ?cost ?from ?to) (fuel ?truck ?before)
                       (sum ?after ?cost ?before) (at ?truck ?from))
    :effect (and (at ?truck ?to) (fuel ?truck ?after) (not (at ?truck ?from)) (not (fuel ?truck ?before)))))
