; Packages that travel by truck within a city and by plane between the airports.
(define (domain logistics)
  (:requirements :strips :typing :negative-preconditions :equality)
  (:types
    city package truck plane - object
    airport - place)
  (:predicates
    (in-city ?place - place ?city - city)
    (of-city ?truck - truck ?city - city)
    (at ?package - package ?place - place)
    (truck-at ?truck - truck ?place - place)
    (plane-at ?plane - plane ?airport - airport)
    (in-truck ?package - package ?truck - truck)
    (in-plane ?package - package ?plane - plane))

  (:action drive
    :parameters (?truck - truck ?from ?to - place ?city - city)
    :precondition (and (not (= ?from ?to)) (of-city ?truck ?city) (in-city ?from ?city) (in-city ?to ?city)
                       (truck-at ?truck ?from))
    :effect (and (truck-at ?truck ?to) (not (truck-at ?truck ?from))))

  (:action fly
    :parameters (?plane - plane ?from ?to - airport)
    :precondition (and (not (= ?from ?to)) (plane-at ?plane ?from))
    :effect (and (plane-at ?plane ?to) (not (plane-at ?plane ?from))))

  (:action load-truck
    :parameters (?package - package ?truck - truck ?place - place ?city - city)
    :precondition (and (of-city ?truck ?city) (in-city ?place ?city) (at ?package ?place) (truck-at ?truck ?place))
    :effect (and (in-truck ?package ?truck) (not (at ?package ?place))))

  (:action unload-truck
    :parameters (?package - package ?truck - truck ?place - place ?city - city)
    :precondition (and (of-city ?truck ?city) (in-city ?place ?city) (in-truck ?package ?truck) (truck-at ?truck ?place))
    :effect (and (at ?package ?place) (not (in-truck ?package ?truck))))

  (:action load-plane
    :parameters (?package - package ?plane - plane ?airport - airport)
    :precondition (and (at ?package ?airport) (plane-at ?plane ?airport))
    :effect (and (in-plane ?package ?plane) (not (at ?package ?airport))))

  (:action unload-plane
    :parameters (?package - package ?plane - plane ?airport - airport)
    :precondition (and (in-plane ?package ?plane) (plane-at ?plane ?airport))
    :effect (and (at ?package ?airport) (not (in-plane ?package ?plane)))))
