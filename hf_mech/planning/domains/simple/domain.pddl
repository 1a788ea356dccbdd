; The domain of Figure 1 of the STRIPS Transformer paper: a and b take turns, with at least one c in between.
(define (domain simple)
  (:requirements :strips)
  (:predicates (p) (q) (r))

  (:action a
    :parameters ()
    :precondition (and (p) (r))
    :effect (and (q) (not (p)) (not (r))))

  (:action b
    :parameters ()
    :precondition (and (q) (r))
    :effect (and (p) (not (q)) (not (r))))

  (:action c
    :parameters ()
    :precondition (and)
    :effect (r)))
