(define (domain simple-learned)
 (:requirements :strips)
 (:predicates 
             (p0)
             (p1)
             (p2)
             (p3)
             (p4)
             (p5)
 )
 (:action a
  :parameters ()
  :precondition (and (p0) (p1) (p4))
  :effect (and (p0) (not (p1)) (p2) (not (p4))))
 (:action b
  :parameters ()
  :precondition (and (p2) (p4))
  :effect (and (p1) (not (p2)) (p3) (not (p4))))
 (:action c
  :parameters ()
  :effect (and (p0) (p4)))
)
