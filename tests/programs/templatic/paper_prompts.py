"""The paper's own prompts, with the completions it gives for them: symbols with spaces between them, as in App. D."""

from __future__ import annotations

NINE = {
    "tgt 1": ("Q the big bear ? a red car A the big bear $ . Q some baby cub ? one small house A", "some baby cub $ ."),
    "tgt 2": ("Q - his green bird A his green bird . Q - some light monkey A", "some light monkey ."),
    "j loves m": ("Q john loves mary A mary hugs john . Q sue loves bill A", "bill hugs sue ."),
    "act2pass": ("Q x V y A y Was V By x . Q u V w A", "w Was V By u ."),
    "act2pass 2": ("Q x V y A y Was V -en By x . Q u1 u2 V w1 w2 w3 A", "w1 w2 w3 Was V -en By u1 u2 ."),
    "swap": ("Q B V D E A D E V B . Q F G H V K L A", "K L V F G H ."),
    "cross mult": (
        "Q ( x / y ) /// (( u // v )) A ( x * v ) / (( y ** u )) . Q ( a / b ) /// (( c // d )) A",
        "( a * d ) / (( b ** c )) .",
    ),
    "implica": ("Q x => y A y or not x . Q ( u and v ) => z A", "z or not ( u and v ) ."),
    "implica 2": ("Q x = y A y or not x . Q ( u and v ) = z A", "z or not ( u and v ) ."),
}
"""Sec. 7.2.4. The table runs words together in places; here all are set apart."""

BOX_2 = {
    "(1)": (
        "Q the program was translated by a compiler A translated ( a compiler , the program ) "
        "Q my big dog was chased by a small black cat A",
        "chased ( a small black cat , my big dog )",
    ),
    "(4)": ("Q x => y A y or not x Q ( u and v ) => z A", "z or not ( u and v )"),
    # The text of (10) is garbled: what can be read of it and of (11), set into template (12),
    # `Q ~ x ) y { z , + u % v A _ u $ x / v * y .`
    "(10)": (
        "Q ~ es zd ey db ak ) fx { tr dz , + vj kj zo % jq hu rd ag "
        "A _ vj kj zo $ es zd ey db ak / jq hu rd ag * fx . "
        "Q ~ dv he ) vv bo td { xh dp qc my mz , + qk % hw oc cw uh A",
        "_ qk $ dv he / hw oc cw uh * vv bo td .",
    ),
}
"""Box 2, but for (7)."""

OUTSIDE = {
    "(7)": ("Q log { x * y } A log ( x ) + log [ y ] Q log { 3a * b ^ 2 } A", "log ( 3a ) + log [ b ^ 2 ]"),
}
"""Box 2 (7): a symbol is in two fields of one region, which the task does not allow (footnote 16)."""

SWAP = ("Q B C V D E A D E V B C Q F G V J K L A", "J K L V F G")
"""(27), the walk-through of App. A."""
