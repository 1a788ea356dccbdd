; Rovers that sample soil and rock, take pictures, and send their data to a lander. The competition's actions that
; send data also delete and add `available` and `channel-free`, which changes nothing; it is left out here.
(define (domain rovers)
  (:requirements :strips :typing)
  (:types rover waypoint store camera mode lander objective)
  (:predicates
    (at ?rover - rover ?waypoint - waypoint)
    (at-lander ?lander - lander ?waypoint - waypoint)
    (can-traverse ?rover - rover ?from ?to - waypoint)
    (equipped-for-soil-analysis ?rover - rover)
    (equipped-for-rock-analysis ?rover - rover)
    (equipped-for-imaging ?rover - rover)
    (empty ?store - store)
    (have-rock-analysis ?rover - rover ?waypoint - waypoint)
    (have-soil-analysis ?rover - rover ?waypoint - waypoint)
    (full ?store - store)
    (calibrated ?camera - camera ?rover - rover)
    (supports ?camera - camera ?mode - mode)
    (available ?rover - rover)
    (visible ?from ?to - waypoint)
    (have-image ?rover - rover ?objective - objective ?mode - mode)
    (communicated-soil-data ?waypoint - waypoint)
    (communicated-rock-data ?waypoint - waypoint)
    (communicated-image-data ?objective - objective ?mode - mode)
    (at-soil-sample ?waypoint - waypoint)
    (at-rock-sample ?waypoint - waypoint)
    (visible-from ?objective - objective ?waypoint - waypoint)
    (store-of ?store - store ?rover - rover)
    (calibration-target ?camera - camera ?objective - objective)
    (on-board ?camera - camera ?rover - rover)
    (channel-free ?lander - lander))

  (:action navigate
    :parameters (?rover - rover ?from ?to - waypoint)
    :precondition (and (can-traverse ?rover ?from ?to) (available ?rover) (at ?rover ?from) (visible ?from ?to))
    :effect (and (at ?rover ?to) (not (at ?rover ?from))))

  (:action sample-soil
    :parameters (?rover - rover ?store - store ?waypoint - waypoint)
    :precondition (and (at ?rover ?waypoint) (at-soil-sample ?waypoint) (equipped-for-soil-analysis ?rover)
                       (store-of ?store ?rover) (empty ?store))
    :effect (and (full ?store) (have-soil-analysis ?rover ?waypoint) (not (empty ?store))
                 (not (at-soil-sample ?waypoint))))

  (:action sample-rock
    :parameters (?rover - rover ?store - store ?waypoint - waypoint)
    :precondition (and (at ?rover ?waypoint) (at-rock-sample ?waypoint) (equipped-for-rock-analysis ?rover)
                       (store-of ?store ?rover) (empty ?store))
    :effect (and (full ?store) (have-rock-analysis ?rover ?waypoint) (not (empty ?store))
                 (not (at-rock-sample ?waypoint))))

  (:action drop
    :parameters (?rover - rover ?store - store)
    :precondition (and (store-of ?store ?rover) (full ?store))
    :effect (and (empty ?store) (not (full ?store))))

  (:action calibrate
    :parameters (?rover - rover ?camera - camera ?objective - objective ?waypoint - waypoint)
    :precondition (and (equipped-for-imaging ?rover) (calibration-target ?camera ?objective) (at ?rover ?waypoint)
                       (visible-from ?objective ?waypoint) (on-board ?camera ?rover))
    :effect (calibrated ?camera ?rover))

  (:action take-image
    :parameters (?rover - rover ?waypoint - waypoint ?objective - objective ?camera - camera ?mode - mode)
    :precondition (and (calibrated ?camera ?rover) (on-board ?camera ?rover) (equipped-for-imaging ?rover)
                       (supports ?camera ?mode) (visible-from ?objective ?waypoint) (at ?rover ?waypoint))
    :effect (and (have-image ?rover ?objective ?mode) (not (calibrated ?camera ?rover))))

  (:action communicate-soil-data
    :parameters (?rover - rover ?lander - lander ?sampled ?from ?to - waypoint)
    :precondition (and (at ?rover ?from) (at-lander ?lander ?to) (have-soil-analysis ?rover ?sampled)
                       (visible ?from ?to) (available ?rover) (channel-free ?lander))
    :effect (communicated-soil-data ?sampled))

  (:action communicate-rock-data
    :parameters (?rover - rover ?lander - lander ?sampled ?from ?to - waypoint)
    :precondition (and (at ?rover ?from) (at-lander ?lander ?to) (have-rock-analysis ?rover ?sampled)
                       (visible ?from ?to) (available ?rover) (channel-free ?lander))
    :effect (communicated-rock-data ?sampled))

  (:action communicate-image-data
    :parameters (?rover - rover ?lander - lander ?objective - objective ?mode - mode ?from ?to - waypoint)
    :precondition (and (at ?rover ?from) (at-lander ?lander ?to) (have-image ?rover ?objective ?mode)
                       (visible ?from ?to) (available ?rover) (channel-free ?lander))
    :effect (communicated-image-data ?objective ?mode)))
