"""tests/bench/loads_under_way.py counts the loads that a kernel's instructions have under way."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

TOGETHER = """
.L_x_2:
        /*0390*/              @!P6 LDG.E.U16.CONSTANT R14, desc[UR8][R22.64] ;
        /*03d0*/              @!P5 LDG.E.128 R16, desc[UR8][R30.64] ;
        /*0410*/                   LDG.E R20, desc[UR8][R44.64] ;
        /*05f0*/                   IMAD.U32 R9, R14, 0x10000, RZ ;
        /*0600*/                   FADD R1, R18, R9 ;
        /*0610*/                   LDG.E.64 R22, desc[UR8][R44.64] ;
"""
ONE_BY_ONE = """
        /*02e0*/              @!P4 LDG.E.U16.CONSTANT R19, desc[UR8][R28.64] ;
        /*0360*/                   IMAD.U32 R15, R19, 0x10000, RZ ;
        /*0320*/               @P4 LDG.E.U16.CONSTANT R20, desc[UR8][R14.64] ;
        /*0340*/                   SHF.L.U32 R15, R20, 0x10, RZ ;
"""


def test_counts_the_bytes_of_loads_that_nothing_has_read():
    from loads_under_way import most_under_way

    assert most_under_way(TOGETHER) == 2 + 16 + 4
    assert most_under_way(ONE_BY_ONE) == 2
    # A store reads the register that it names first.
    assert most_under_way(" /*0010*/ LDG.E R2, desc[UR4][R4.64] ;\n /*0020*/ STG.E R2, R6 ;\n /*0030*/ LDG.E R8, desc[UR4][R4.64] ;\n") == 4
    # What lies behind a label may come from elsewhere.
    assert most_under_way(" /*0010*/ LDG.E R2, desc[UR4][R4.64] ;\n.L_x_3:\n /*0030*/ LDG.E R8, desc[UR4][R4.64] ;\n") == 4
