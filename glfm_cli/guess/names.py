"""What the name of a column suggests; used only where its values leave a choice."""

from __future__ import annotations

import re
from functools import partial


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


_ID = words("id ids uuid guid uid pid identifier rowid rownames serial mrn uprn mpan mprn")
_ROW = words(
    "index idx row nr no key individual subject participant respondent patient person case"
)  # the whole name: a "body mass index" is none
_COUNT = words(
    """n nr num number numbers no count counts visits children kids siblings persons people members
    rooms cars times age days weeks months years hours hrs minutes weekswrk parity pregnancies
    credits points goals assists wins losses orders purchases transactions sessions clicks logins
    calls tickets claims complaints week day hour period visit wave occasion session round
    floors storeys stories bedrooms bathrooms doors seats adults dependents dependants employees
    pets vehicles weight weights quantity qty"""
)
_ITEM = re.compile(r"n\W?\d+", re.IGNORECASE)  # one of several, as N1 to N5 of a questionnaire
_ENDS_AS_NUMBER = re.compile(r".*(?:[\W_](?:nr|no|num|number)|(?<=[a-z])N(?:[Rr]|o|um|umber))")
_CODE = words(
    """code codes type kind class category cat group region district zone state country zip zipcode
    postcode plz postleitzahl
    fips race ethnicity ethnic sex gender status species site centre center arm treatment
    trt rx siteid centreid centerid invid hospital school sch cluster sector industry occupation
    marital month weekday quarter target label landcover landuse lulc clc lithology facies
    lithofacies geology biome ecoregion landform"""
)
_LAND = re.compile(r"land[\W_]?(cover|use)(?![a-z])", re.IGNORECASE)
_NUMBERED_CODE = words("code codes zip zipcode postcode plz postleitzahl fips")
_FLAG = words("flag flags bitflag bitflags bitmask bitmasks qaflag qcflag qcflags")
_SCALE = words(
    """score scale grade stage rating rate level likert satisfaction agreement severity rank quality
    education degree health importance frequency item q star stars point ecog nyha asa karnofsky
    epc dpe energieklasse energieeffizienzklasse effizienzklasse"""
)
_ENDS_OF_SCALE = re.compile(r"[(\[]\s*([01])\s*(?:-|–|to|bis)\s*(\d|10|20)\s*[)\]]")
_ENERGY = words("energy energetic energie énergie energetica energética")
_CLASS = words("class label band klasse classe clase")
_REMARK = words(
    """remark remarks comment comments note notes bemerkung bemerkungen kommentar kommentare
    anmerkung anmerkungen remarque remarques commentaire commentaires observaciones comentario
    comentarios osservazioni opmerkingen"""
)
_BANDED = words("income rincome earnings salary wage")  # small numbers of which are bands
_SHARE = words("share proportion prop fraction frac prob probability rate ratio")
_PERCENT = words("percent percentage pct perc")
_DATE = words("date datum fecha data dat day tag dob birthdate geburtsdatum")
_WHEN = words("time timestamp datetime date day week month year created updated")
_OCCASION = words(
    """wave visit time year month week day session occasion semester round age welle jahr monat
    woche tag zeit besuch vague visite temps annee mois ola visita tiempo mes"""
)
_INTENSITY = words("lfq ibaq baq intensity intensities abundance abundances")
_WEIGHT = re.compile(  # of a survey; that of a body or a car is called weight alone
    r"""(survey|sampl(e|ing)|design|final|calibrat(ed|ion)|population|analysis|person|household|
    post[\W_]*strat\w*|inverse[\W_]*probability)[\W_]*(weights?|wgts?|wts?)|
    (weights?|wgt|wt)[\W_]*(survey|sample|design|final)|
    pspwght|pweight|dweight|anweight|perwt|hhwt|wtss(all)?|wt(int|mec)\d*yr|
    hochrechnungsfaktor|gewichtungsfaktor|(facteur|coefficient)\sde\spond[eé]ration|
    (factor|coeficiente)\sde\s(expansi[oó]n|ponderaci[oó]n)""",
    re.IGNORECASE | re.VERBOSE,
)
_ENDS = [
    *(("from", "to"), ("top", "bottom"), ("top", "base"), ("lower", "upper"), ("low", "high")),
    *(("min", "max"), ("start", "end"), ("begin", "end"), ("first", "last"), ("von", "bis")),
    *(("dia", "sys"), ("dbp", "sbp"), ("q1", "q3"), ("desde", "hasta"), ("lcl", "ucl")),
]
_CONCENTRATION = words("ppm ppb ppt ppq mg ug µg μg ng conc concentration icp xrf aas")
_ELEMENT = re.compile(  # first in the name: `As`, `Zn_XRF`, `Pb.2019`, but not V1
    r"""(A[glsu]|B[aei]|C[adelorsu]|Dy|E[ru]|Fe|G[ade]|H[gfo]|L[aiu]|M[gno]|N[abdi]|P[bdrt]|
    R[be]|S[bceimnr]|T[abehil]|Yb|Z[nr]|[BCFKPSUVWY](?=[ _.(]|$))(?![a-z])""",
    re.VERBOSE,
)
_DIRECTION = words(
    """aspect direction dir azimuth bearing heading winddir wdir winddirection windrichtung richtung
    exposition"""
)
_YEAR = frozenset({"year", "yr", "yob", "birthyear"})


def parts(name: str) -> set[str]:
    """Return the words of a name: `patientID`, `patient_id` and `Patient Id` are patient, id."""
    split = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return {part for part in re.split(r"[\W\d_]+", split.casefold()) if part}


def is_scale(name: str) -> bool:
    """Return whether a name is that of a scale, as of grades or classes of energy."""
    return _has(_SCALE, name) or (_has(_ENERGY, name) and _has(_CLASS, name))


def ends_of_scale(name: str) -> tuple[int, int] | None:
    """Return the ends of a scale that a name tells in brackets: `Odour (1-9)`, `pain [0 to 10]`."""
    found = _ENDS_OF_SCALE.search(name)
    return (int(found[1]), int(found[2])) if found else None


def is_id(name: str) -> bool:
    found = parts(name)
    unnamed = not name or name.startswith("Unnamed:")
    return unnamed or bool(found & _ID) or (len(found) == 1 and found <= _ROW)


def is_weight(name: str) -> bool:
    return _WEIGHT.fullmatch(name.strip()) is not None


def is_intensity(name: str) -> bool:
    """Return whether a name is that of an intensity, as of mass spectrometry."""
    return _has(_INTENSITY, name)


def is_concentration(name: str) -> bool:
    """Return whether a name has the unit of a concentration, or begins with a chemical element."""
    return _has(_CONCENTRATION, name) or _ELEMENT.match(name) is not None


def upper_ends(low: str) -> set[str]:
    """Return the casefolded names of the upper ends of what a name may be the lower end of.

    Such as `valid to` of `Valid from`.
    """
    low = low.casefold()
    return {low.replace(one, other) for one, other in _ENDS if one in low}


def is_percent(name: str) -> bool:
    return "%" in name or bool(parts(name) & _PERCENT)


def _has(of: frozenset[str], name: str) -> bool:
    """Return whether one of the words of a name is among others."""
    return not of.isdisjoint(parts(name))


def is_count(name: str) -> bool:
    return _has(_COUNT, name) and _ITEM.fullmatch(name) is None


def is_form_status(name: str) -> bool:
    """Return whether a name is that of how complete a form is, as `visit_1_complete` of REDCap."""
    return len(name) > len("_complete") and name.casefold().endswith("_complete")


def is_number_of_one(name: str) -> bool:
    """Return whether a name such as `invoice_no` or `pupilNR` is that of what numbers one each.

    Beside another answer, as in `smoker_yes_cancer_no`, it is an answer, too.
    """
    *before, _ = re.split(r"[\W_]+", name.casefold())
    return _ENDS_AS_NUMBER.fullmatch(name) is not None and not {"yes", "no"} & set(before)


def is_code(name: str) -> bool:
    """Return whether a name is that of codes of categories."""
    return _has(_CODE, name) or _LAND.match(name) is not None


is_flag = partial(_has, _FLAG)
is_numbered_code = partial(_has, _NUMBERED_CODE)
is_remark = partial(_has, _REMARK)
is_banded = partial(_has, _BANDED)
is_share = partial(_has, _SHARE)
is_date = partial(_has, _DATE)
is_when = partial(_has, _WHEN)
is_occasion = partial(_has, _OCCASION)
is_direction = partial(_has, _DIRECTION)
is_year = partial(_has, _YEAR)
