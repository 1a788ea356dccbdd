; Satellites that turn, switch on and calibrate their instruments, and take images.
(define (domain satellite)
  (:requirements :strips :typing :negative-preconditions :equality)
  (:types satellite direction instrument mode)
  (:predicates
    (on-board ?instrument - instrument ?satellite - satellite)
    (supports ?instrument - instrument ?mode - mode)
    (pointing ?satellite - satellite ?direction - direction)
    (power-avail ?satellite - satellite)
    (power-on ?instrument - instrument)
    (calibrated ?instrument - instrument)
    (have-image ?direction - direction ?mode - mode)
    (calibration-target ?instrument - instrument ?direction - direction))

  (:action turn-to
    :parameters (?satellite - satellite ?to ?from - direction)
    :precondition (and (pointing ?satellite ?from) (not (= ?to ?from)))
    :effect (and (pointing ?satellite ?to) (not (pointing ?satellite ?from))))

  (:action switch-on
    :parameters (?instrument - instrument ?satellite - satellite)
    :precondition (and (on-board ?instrument ?satellite) (power-avail ?satellite))
    :effect (and (power-on ?instrument) (not (calibrated ?instrument)) (not (power-avail ?satellite))))

  (:action switch-off
    :parameters (?instrument - instrument ?satellite - satellite)
    :precondition (and (on-board ?instrument ?satellite) (power-on ?instrument))
    :effect (and (power-avail ?satellite) (not (power-on ?instrument))))

  (:action calibrate
    :parameters (?satellite - satellite ?instrument - instrument ?direction - direction)
    :precondition (and (on-board ?instrument ?satellite) (calibration-target ?instrument ?direction)
                       (pointing ?satellite ?direction) (power-on ?instrument))
    :effect (calibrated ?instrument))

  (:action take-image
    :parameters (?satellite - satellite ?direction - direction ?instrument - instrument ?mode - mode)
    :precondition (and (calibrated ?instrument) (on-board ?instrument ?satellite) (supports ?instrument ?mode)
                       (power-on ?instrument) (pointing ?satellite ?direction))
    :effect (have-image ?direction ?mode)))
