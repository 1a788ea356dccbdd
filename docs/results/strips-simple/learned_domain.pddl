(define (domain simple-learned)
 (:requirements :strips)
 (:predicates 
             (p0)
             (p1)
             (p2)
 )
 (:action a
  :parameters ()
  :precondition (and (p0) (p1))
  :effect (and (not (p0)) (not (p1)) (p2)))
 (:action b
  :parameters ()
  :precondition (and (p0) (p2))
  :effect (and (not (p0)) (p1) (not (p2))))
 (:action c
  :parameters ()
  :effect (and (p0)))
)
