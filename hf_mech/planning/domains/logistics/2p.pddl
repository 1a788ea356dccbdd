(define (problem logistics-2p)
  (:domain logistics)
  (:objects c1 c2 - city p1 p2 - package t1 t2 - truck jet - plane a1 a2 - airport s1 s2 - place)
  (:init
    (in-city a1 c1) (in-city s1 c1) (in-city a2 c2) (in-city s2 c2) (of-city t1 c1) (of-city t2 c2)
    (truck-at t1 s1) (truck-at t2 s2) (plane-at jet a1)
    (at p1 s1) (at p2 s2))
  (:goal (and (at p1 s2) (at p2 s1))))
