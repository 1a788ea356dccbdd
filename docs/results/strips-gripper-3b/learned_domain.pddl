(define (domain gripper-3b-learned)
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
             (p17)
             (p18)
 )
 (:action move--a--b
  :parameters ()
  :precondition (and (p5))
  :effect (and (p0) (not (p5)) (p6)))
 (:action move--b--a
  :parameters ()
  :precondition (and (p0) (p6))
  :effect (and (not (p0)) (p5) (not (p6))))
 (:action pick--b1--a--left
  :parameters ()
  :precondition (and (p1) (p3) (p5) (p10) (p13))
  :effect (and (not (p0)) (not (p2)) (not (p3)) (not (p6)) (not (p7)) (p8) (not (p9)) (not (p10)) (not (p17))))
 (:action pick--b1--a--right
  :parameters ()
  :precondition (and (p5) (p10) (p12) (p13))
  :effect (and (not (p0)) (not (p6)) (not (p8)) (not (p9)) (not (p10)) (not (p11)) (not (p13)) (not (p15)) (p17)))
 (:action pick--b1--b--left
  :parameters ()
  :precondition (and (p0) (p1) (p3) (p6) (p9) (p13))
  :effect (and (not (p2)) (not (p3)) (not (p5)) (not (p7)) (p8) (not (p9)) (not (p10)) (not (p17))))
 (:action pick--b1--b--right
  :parameters ()
  :precondition (and (p0) (p6) (p9) (p12) (p13))
  :effect (and (not (p5)) (not (p8)) (not (p9)) (not (p10)) (not (p11)) (not (p13)) (not (p15)) (p17)))
 (:action pick--b2--a--left
  :parameters ()
  :precondition (and (p1) (p3) (p4) (p5))
  :effect (and (not (p0)) (p2) (not (p3)) (not (p4)) (not (p6)) (not (p7)) (not (p8)) (not (p15)) (not (p18))))
 (:action pick--b2--a--right
  :parameters ()
  :precondition (and (p4) (p5) (p12) (p13))
  :effect (and (not (p0)) (not (p2)) (not (p4)) (not (p6)) (not (p11)) (not (p12)) (p15) (not (p17)) (not (p18))))
 (:action pick--b2--b--left
  :parameters ()
  :precondition (and (p0) (p1) (p3) (p6) (p18))
  :effect (and (p2) (not (p3)) (not (p4)) (not (p5)) (not (p7)) (not (p8)) (not (p15)) (not (p18))))
 (:action pick--b2--b--right
  :parameters ()
  :precondition (and (p0) (p6) (p12) (p13) (p18))
  :effect (and (not (p2)) (not (p4)) (not (p5)) (not (p11)) (not (p12)) (p15) (not (p17)) (not (p18))))
 (:action pick--b3--a--left
  :parameters ()
  :precondition (and (p1) (p3) (p5) (p14))
  :effect (and (not (p0)) (not (p1)) (not (p2)) (not (p6)) (p7) (not (p8)) (not (p11)) (not (p14)) (not (p16))))
 (:action pick--b3--a--right
  :parameters ()
  :precondition (and (p1) (p5) (p12) (p13) (p14))
  :effect (and (not (p0)) (not (p6)) (not (p7)) (p11) (not (p12)) (not (p14)) (not (p15)) (not (p16)) (not (p17))))
 (:action pick--b3--b--left
  :parameters ()
  :precondition (and (p0) (p1) (p3) (p6) (p16))
  :effect (and (not (p1)) (not (p2)) (not (p5)) (p7) (not (p8)) (not (p11)) (not (p14)) (not (p16))))
 (:action pick--b3--b--right
  :parameters ()
  :precondition (and (p0) (p1) (p6) (p12) (p13) (p16))
  :effect (and (not (p5)) (not (p7)) (p11) (not (p12)) (not (p14)) (not (p15)) (not (p16)) (not (p17))))
 (:action drop--b1--a--left
  :parameters ()
  :precondition (and (p1) (p5) (p8) (p13))
  :effect (and (not (p0)) (not (p2)) (p3) (not (p6)) (not (p7)) (not (p8)) (not (p9)) (p10) (not (p17))))
 (:action drop--b1--a--right
  :parameters ()
  :precondition (and (p5) (p12) (p17))
  :effect (and (not (p0)) (not (p6)) (not (p8)) (not (p9)) (p10) (not (p11)) (p13) (not (p15)) (not (p17))))
 (:action drop--b1--b--left
  :parameters ()
  :precondition (and (p0) (p1) (p6) (p8) (p13))
  :effect (and (not (p2)) (p3) (not (p5)) (not (p7)) (not (p8)) (p9) (not (p10)) (not (p17))))
 (:action drop--b1--b--right
  :parameters ()
  :precondition (and (p0) (p6) (p12) (p17))
  :effect (and (not (p5)) (not (p8)) (p9) (not (p10)) (not (p11)) (p13) (not (p15)) (not (p17))))
 (:action drop--b2--a--left
  :parameters ()
  :precondition (and (p1) (p2) (p5))
  :effect (and (not (p0)) (not (p2)) (p3) (p4) (not (p6)) (not (p7)) (not (p8)) (not (p15)) (not (p18))))
 (:action drop--b2--a--right
  :parameters ()
  :precondition (and (p5) (p13) (p15))
  :effect (and (not (p0)) (not (p2)) (p4) (not (p6)) (not (p11)) (p12) (not (p15)) (not (p17)) (not (p18))))
 (:action drop--b2--b--left
  :parameters ()
  :precondition (and (p0) (p1) (p2) (p6))
  :effect (and (not (p2)) (p3) (not (p4)) (not (p5)) (not (p7)) (not (p8)) (not (p15)) (p18)))
 (:action drop--b2--b--right
  :parameters ()
  :precondition (and (p0) (p6) (p13) (p15))
  :effect (and (not (p2)) (not (p4)) (not (p5)) (not (p11)) (p12) (not (p15)) (not (p17)) (p18)))
 (:action drop--b3--a--left
  :parameters ()
  :precondition (and (p3) (p5) (p7))
  :effect (and (not (p0)) (p1) (not (p2)) (not (p6)) (not (p7)) (not (p8)) (not (p11)) (p14) (not (p16))))
 (:action drop--b3--a--right
  :parameters ()
  :precondition (and (p1) (p5) (p11) (p13))
  :effect (and (not (p0)) (not (p6)) (not (p7)) (not (p11)) (p12) (p14) (not (p15)) (not (p16)) (not (p17))))
 (:action drop--b3--b--left
  :parameters ()
  :precondition (and (p0) (p3) (p6) (p7))
  :effect (and (p1) (not (p2)) (not (p5)) (not (p7)) (not (p8)) (not (p11)) (not (p14)) (p16)))
 (:action drop--b3--b--right
  :parameters ()
  :precondition (and (p0) (p1) (p6) (p11) (p13))
  :effect (and (not (p5)) (not (p7)) (not (p11)) (p12) (not (p14)) (not (p15)) (p16) (not (p17))))
)
