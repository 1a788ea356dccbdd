; A man who picks up spanners on his way to loose nuts; each spanner tightens one nut.
(define (domain spanner)
  (:requirements :strips :typing)
  (:types
    location locatable - object
    man nut spanner - locatable)
  (:predicates
    (at ?thing - locatable ?location - location)
    (carrying ?man - man ?spanner - spanner)
    (useable ?spanner - spanner)
    (link ?from ?to - location)
    (tightened ?nut - nut)
    (loose ?nut - nut))

  (:action walk
    :parameters (?from ?to - location ?man - man)
    :precondition (and (at ?man ?from) (link ?from ?to))
    :effect (and (at ?man ?to) (not (at ?man ?from))))

  (:action pickup-spanner
    :parameters (?location - location ?spanner - spanner ?man - man)
    :precondition (and (at ?man ?location) (at ?spanner ?location))
    :effect (and (carrying ?man ?spanner) (not (at ?spanner ?location))))

  (:action tighten-nut
    :parameters (?location - location ?spanner - spanner ?man - man ?nut - nut)
    :precondition (and (at ?man ?location) (at ?nut ?location) (carrying ?man ?spanner) (useable ?spanner)
                       (loose ?nut))
    :effect (and (tightened ?nut) (not (loose ?nut)) (not (useable ?spanner)))))
