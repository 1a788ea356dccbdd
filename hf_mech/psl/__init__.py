"""PSL, the Production System Language: parser, checker, symbolic machines, and the compiler to QKVL and DAT weights."""
