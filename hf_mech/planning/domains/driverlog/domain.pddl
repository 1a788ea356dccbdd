; Drivers who walk along paths and drive trucks along links, and objects that the trucks carry.
(define (domain driverlog)
  (:requirements :strips :typing)
  (:types
    location locatable - object
    driver truck item - locatable)
  (:predicates
    (at ?thing - locatable ?location - location)
    (in ?item - item ?truck - truck)
    (driving ?driver - driver ?truck - truck)
    (empty ?truck - truck)
    (link ?from ?to - location)
    (path ?from ?to - location))

  (:action load-truck
    :parameters (?item - item ?truck - truck ?location - location)
    :precondition (and (at ?truck ?location) (at ?item ?location))
    :effect (and (in ?item ?truck) (not (at ?item ?location))))

  (:action unload-truck
    :parameters (?item - item ?truck - truck ?location - location)
    :precondition (and (at ?truck ?location) (in ?item ?truck))
    :effect (and (at ?item ?location) (not (in ?item ?truck))))

  (:action board-truck
    :parameters (?driver - driver ?truck - truck ?location - location)
    :precondition (and (at ?truck ?location) (at ?driver ?location) (empty ?truck))
    :effect (and (driving ?driver ?truck) (not (at ?driver ?location)) (not (empty ?truck))))

  (:action disembark-truck
    :parameters (?driver - driver ?truck - truck ?location - location)
    :precondition (and (at ?truck ?location) (driving ?driver ?truck))
    :effect (and (at ?driver ?location) (empty ?truck) (not (driving ?driver ?truck))))

  (:action drive-truck
    :parameters (?truck - truck ?from ?to - location ?driver - driver)
    :precondition (and (at ?truck ?from) (driving ?driver ?truck) (link ?from ?to))
    :effect (and (at ?truck ?to) (not (at ?truck ?from))))

  (:action walk
    :parameters (?driver - driver ?from ?to - location)
    :precondition (and (at ?driver ?from) (path ?from ?to))
    :effect (and (at ?driver ?to) (not (at ?driver ?from)))))
