; A barman with two hands who fills shots, mixes cocktails in a shaker and serves them.
(define (domain barman)
  (:requirements :strips :typing)
  (:types
    hand level beverage dispenser container - object
    ingredient cocktail - beverage
    shot shaker - container)
  (:predicates
    (ontable ?container - container)
    (holding ?hand - hand ?container - container)
    (handempty ?hand - hand)
    (empty ?container - container)
    (contains ?container - container ?beverage - beverage)
    (clean ?container - container)
    (used ?container - container ?beverage - beverage)
    (dispenses ?dispenser - dispenser ?ingredient - ingredient)
    (shaker-empty-level ?shaker - shaker ?level - level)
    (shaker-level ?shaker - shaker ?level - level)
    (next ?less ?more - level)
    (unshaked ?shaker - shaker)
    (shaked ?shaker - shaker)
    (cocktail-part1 ?cocktail - cocktail ?ingredient - ingredient)
    (cocktail-part2 ?cocktail - cocktail ?ingredient - ingredient))

  (:action grasp
    :parameters (?hand - hand ?container - container)
    :precondition (and (ontable ?container) (handempty ?hand))
    :effect (and (holding ?hand ?container) (not (ontable ?container)) (not (handempty ?hand))))

  (:action leave
    :parameters (?hand - hand ?container - container)
    :precondition (holding ?hand ?container)
    :effect (and (handempty ?hand) (ontable ?container) (not (holding ?hand ?container))))

  (:action fill-shot
    :parameters (?shot - shot ?ingredient - ingredient ?hand ?other - hand ?dispenser - dispenser)
    :precondition (and (holding ?hand ?shot) (handempty ?other) (dispenses ?dispenser ?ingredient) (empty ?shot)
                       (clean ?shot))
    :effect (and (contains ?shot ?ingredient) (used ?shot ?ingredient) (not (empty ?shot)) (not (clean ?shot))))

  (:action refill-shot
    :parameters (?shot - shot ?ingredient - ingredient ?hand ?other - hand ?dispenser - dispenser)
    :precondition (and (holding ?hand ?shot) (handempty ?other) (dispenses ?dispenser ?ingredient) (empty ?shot)
                       (used ?shot ?ingredient))
    :effect (and (contains ?shot ?ingredient) (not (empty ?shot))))

  (:action empty-shot
    :parameters (?hand - hand ?shot - shot ?beverage - beverage)
    :precondition (and (holding ?hand ?shot) (contains ?shot ?beverage))
    :effect (and (empty ?shot) (not (contains ?shot ?beverage))))

  (:action clean-shot
    :parameters (?shot - shot ?beverage - beverage ?hand ?other - hand)
    :precondition (and (holding ?hand ?shot) (handempty ?other) (empty ?shot) (used ?shot ?beverage))
    :effect (and (clean ?shot) (not (used ?shot ?beverage))))

  (:action pour-shot-to-clean-shaker
    :parameters (?shot - shot ?ingredient - ingredient ?shaker - shaker ?hand - hand ?before ?after - level)
    :precondition (and (holding ?hand ?shot) (contains ?shot ?ingredient) (empty ?shaker) (clean ?shaker)
                       (shaker-level ?shaker ?before) (next ?before ?after))
    :effect (and (contains ?shaker ?ingredient) (empty ?shot) (unshaked ?shaker) (shaker-level ?shaker ?after)
                 (not (contains ?shot ?ingredient)) (not (empty ?shaker)) (not (clean ?shaker))
                 (not (shaker-level ?shaker ?before))))

  (:action pour-shot-to-used-shaker
    :parameters (?shot - shot ?ingredient - ingredient ?shaker - shaker ?hand - hand ?before ?after - level)
    :precondition (and (holding ?hand ?shot) (contains ?shot ?ingredient) (unshaked ?shaker)
                       (shaker-level ?shaker ?before) (next ?before ?after))
    :effect (and (contains ?shaker ?ingredient) (empty ?shot) (shaker-level ?shaker ?after)
                 (not (contains ?shot ?ingredient)) (not (shaker-level ?shaker ?before))))

  (:action empty-shaker
    :parameters (?hand - hand ?shaker - shaker ?cocktail - cocktail ?before ?after - level)
    :precondition (and (holding ?hand ?shaker) (contains ?shaker ?cocktail) (shaked ?shaker)
                       (shaker-level ?shaker ?before) (shaker-empty-level ?shaker ?after))
    :effect (and (empty ?shaker) (shaker-level ?shaker ?after) (not (shaked ?shaker))
                 (not (shaker-level ?shaker ?before)) (not (contains ?shaker ?cocktail))))

  (:action clean-shaker
    :parameters (?hand ?other - hand ?shaker - shaker)
    :precondition (and (holding ?hand ?shaker) (handempty ?other) (empty ?shaker))
    :effect (clean ?shaker))

  (:action shake
    :parameters (?cocktail - cocktail ?first ?second - ingredient ?shaker - shaker ?hand ?other - hand)
    :precondition (and (holding ?hand ?shaker) (handempty ?other) (contains ?shaker ?first)
                       (contains ?shaker ?second) (cocktail-part1 ?cocktail ?first)
                       (cocktail-part2 ?cocktail ?second) (unshaked ?shaker))
    :effect (and (shaked ?shaker) (contains ?shaker ?cocktail) (not (unshaked ?shaker))
                 (not (contains ?shaker ?first)) (not (contains ?shaker ?second))))

  (:action pour-shaker-to-shot
    :parameters (?beverage - beverage ?shot - shot ?hand - hand ?shaker - shaker ?before ?after - level)
    :precondition (and (holding ?hand ?shaker) (shaked ?shaker) (empty ?shot) (clean ?shot)
                       (contains ?shaker ?beverage) (shaker-level ?shaker ?before) (next ?after ?before))
    :effect (and (contains ?shot ?beverage) (shaker-level ?shaker ?after) (not (clean ?shot)) (not (empty ?shot))
                 (not (shaker-level ?shaker ?before)))))
