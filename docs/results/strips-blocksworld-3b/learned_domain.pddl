(define (domain blocksworld-3b-learned)
 (:requirements :strips)
 (:predicates 
             (p0)
             (p1)
             (p2)
             (p3)
             (p4)
             (p5)
             (p6)
             (p7)
             (p8)
             (p9)
             (p10)
             (p11)
             (p12)
             (p13)
             (p14)
             (p15)
             (p16)
 )
 (:action pick-up--a
  :parameters ()
  :precondition (and (p0) (p3) (p8) (p10) (p11))
  :effect (and (not (p0)) (p4) (not (p10)) (not (p12))))
 (:action pick-up--b
  :parameters ()
  :precondition (and (p5) (p8) (p10) (p13))
  :effect (and (not (p1)) (not (p5)) (p7) (not (p8)) (p9) (not (p12))))
 (:action pick-up--c
  :parameters ()
  :precondition (and (p0) (p2) (p5) (p7) (p11))
  :effect (and (not (p1)) (not (p2)) (not (p5)) (not (p6)) (not (p7)) (not (p11)) (p12)))
 (:action put-down--a
  :parameters ()
  :precondition (and (p3) (p4) (p8) (p11))
  :effect (and (p0) (not (p4)) (p10) (not (p12))))
 (:action put-down--b
  :parameters ()
  :precondition (and (p7) (p9) (p10) (p13))
  :effect (and (not (p1)) (p5) (p8) (not (p9)) (not (p12))))
 (:action put-down--c
  :parameters ()
  :precondition (and (p0) (p12))
  :effect (and (not (p1)) (p2) (p5) (not (p6)) (p7) (p11) (not (p12))))
 (:action stack--a--b
  :parameters ()
  :precondition (and (p2) (p3) (p4) (p7) (p8) (p11))
  :effect (and (p0) (not (p1)) (not (p3)) (not (p6)) (not (p10)) (not (p12))))
 (:action stack--a--c
  :parameters ()
  :precondition (and (p3) (p4) (p8) (p11) (p13))
  :effect (and (not (p0)) (not (p3)) (not (p9)) (p10) (not (p12))))
 (:action stack--b--a
  :parameters ()
  :precondition (and (p2) (p7) (p9) (p10) (p11) (p13))
  :effect (and (not (p1)) (p5) (not (p6)) (not (p8)) (not (p12)) (not (p13))))
 (:action stack--b--c
  :parameters ()
  :precondition (and (p0) (p3) (p7) (p9) (p10) (p13))
  :effect (and (not (p1)) (not (p4)) (not (p5)) (p8) (not (p12)) (not (p13))))
 (:action stack--c--a
  :parameters ()
  :precondition (and (p0) (p8) (p12) (p13))
  :effect (and (not (p1)) (not (p2)) (p5) (p6) (not (p9)) (not (p11)) (not (p12))))
 (:action stack--c--b
  :parameters ()
  :precondition (and (p0) (p3) (p10) (p12))
  :effect (and (p1) (not (p2)) (not (p4)) (not (p5)) (p11) (not (p12))))
 (:action unstack--a--b
  :parameters ()
  :precondition (and (p0) (p2) (p4) (p7) (p8) (p11))
  :effect (and (not (p0)) (not (p1)) (p3) (not (p6)) (not (p10)) (not (p12))))
 (:action unstack--a--c
  :parameters ()
  :precondition (and (p4) (p8) (p10) (p11) (p13))
  :effect (and (not (p0)) (p3) (not (p9)) (not (p10)) (not (p12))))
 (:action unstack--b--a
  :parameters ()
  :precondition (and (p2) (p5) (p7) (p9) (p10) (p11))
  :effect (and (not (p1)) (not (p5)) (not (p6)) (not (p8)) (not (p12)) (p13)))
 (:action unstack--b--c
  :parameters ()
  :precondition (and (p0) (p3) (p7) (p8) (p9) (p10))
  :effect (and (not (p1)) (not (p4)) (not (p5)) (not (p8)) (not (p12)) (p13)))
 (:action unstack--c--a
  :parameters ()
  :precondition (and (p0) (p5) (p6) (p8) (p13))
  :effect (and (not (p1)) (not (p2)) (not (p5)) (not (p9)) (not (p11)) (p12)))
 (:action unstack--c--b
  :parameters ()
  :precondition (and (p0) (p1) (p3) (p10) (p11))
  :effect (and (not (p1)) (not (p2)) (not (p4)) (not (p5)) (not (p7)) (not (p11)) (p12)))
)
