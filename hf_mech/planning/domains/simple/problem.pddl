(define (problem simple)
  (:domain simple)
  (:init (p) (r))
  (:goal (and (q) (r))))
