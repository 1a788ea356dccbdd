; The travelling purchaser: trucks that buy goods at markets and bring them to depots; amounts are levels.
(define (domain tpp)
  (:requirements :strips :typing)
  (:types
    place locatable level - object
    depot market - place
    truck goods - locatable)
  (:predicates
    (loaded ?goods - goods ?truck - truck ?level - level)
    (ready-to-load ?goods - goods ?market - market ?level - level)
    (stored ?goods - goods ?level - level)
    (on-sale ?goods - goods ?market - market ?level - level)
    (next ?more ?less - level)
    (at ?truck - truck ?place - place)
    (connected ?from ?to - place))

  (:action drive
    :parameters (?truck - truck ?from ?to - place)
    :precondition (and (at ?truck ?from) (connected ?from ?to))
    :effect (and (at ?truck ?to) (not (at ?truck ?from))))

  (:action load
    :parameters (?goods - goods ?truck - truck ?market - market ?a ?b ?c ?d - level)
    :precondition (and (at ?truck ?market) (loaded ?goods ?truck ?c) (ready-to-load ?goods ?market ?b) (next ?b ?a)
                       (next ?d ?c))
    :effect (and (loaded ?goods ?truck ?d) (ready-to-load ?goods ?market ?a) (not (loaded ?goods ?truck ?c))
                 (not (ready-to-load ?goods ?market ?b))))

  (:action unload
    :parameters (?goods - goods ?truck - truck ?depot - depot ?a ?b ?c ?d - level)
    :precondition (and (at ?truck ?depot) (loaded ?goods ?truck ?b) (stored ?goods ?c) (next ?b ?a) (next ?d ?c))
    :effect (and (loaded ?goods ?truck ?a) (stored ?goods ?d) (not (loaded ?goods ?truck ?b))
                 (not (stored ?goods ?c))))

  (:action buy
    :parameters (?truck - truck ?goods - goods ?market - market ?a ?b ?c ?d - level)
    :precondition (and (at ?truck ?market) (on-sale ?goods ?market ?b) (ready-to-load ?goods ?market ?c)
                       (next ?b ?a) (next ?d ?c))
    :effect (and (on-sale ?goods ?market ?a) (ready-to-load ?goods ?market ?d) (not (on-sale ?goods ?market ?b))
                 (not (ready-to-load ?goods ?market ?c)))))
