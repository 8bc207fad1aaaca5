"""Words of scales in seven languages, from low to high; those that mean the same stand together."""

from __future__ import annotations

ENGLISH = (
    "none|no|absent/very low|lowest/low|lower/mid|middle|medium|moderate|average|normal|"
    "intermediate/high|higher/very high|highest",
    "l/m/h",
    "xxs|extra extra small/xs|extra small|very small|tiny/s|small/m|medium|mid|middle/l|large|"
    "big/xl|extra large|very large|huge/xxl|extra extra large/xxxl",
    "strongly disagree|disagree strongly|completely disagree|totally disagree/disagree|"
    "mostly disagree/somewhat disagree|disagree somewhat|moderately disagree|tend to disagree/"
    "slightly disagree|disagree slightly|disagree a little/neutral|neither|"
    "neither agree nor disagree|undecided|not sure|unsure|no opinion/slightly agree|"
    "agree slightly|agree a little/somewhat agree|agree somewhat|moderately agree|tend to agree/"
    "agree|mostly agree/strongly agree|agree strongly|completely agree|totally agree",
    "never/almost never|hardly ever|very rarely/rarely|seldom/occasionally|once in a while/"
    "sometimes|now and then/often|frequently/very often/usually|mostly|most of the time/"
    "almost always|nearly always/always|all the time",
    "never/less than monthly/monthly/weekly/daily|almost daily|daily or almost daily",
    "terrible|awful|very bad|very poor/bad|poor/fair|so so|acceptable|average|ok|okay/good/"
    "very good/excellent|outstanding",
    "very dissatisfied|very unsatisfied|completely dissatisfied/dissatisfied|unsatisfied/"
    "somewhat dissatisfied|slightly dissatisfied/neutral|neither|"
    "neither satisfied nor dissatisfied/somewhat satisfied|slightly satisfied/satisfied/"
    "very satisfied|completely satisfied",
    "very unlikely|extremely unlikely/unlikely/somewhat unlikely/neutral|neither|possible|"
    "possibly|neither likely nor unlikely/somewhat likely/likely|probable|probably/very likely|"
    "extremely likely|certain|definitely",
    "none|no|absent|normal/minimal|trace|very mild/mild|slight|minor|light/moderate|medium/"
    "severe|serious|major|marked|heavy/very severe|critical|extreme/fatal",
    "not at all|none|nothing/hardly|very little/a little|slightly|a bit|a little bit|little/"
    "somewhat|moderately|some/quite a bit|quite|considerably/very|very much|a lot|much/extremely",
    "not important|not at all important|unimportant/slightly important|a little important/"
    "moderately important|somewhat important/important/very important/extremely important",
    "none|no schooling|no education/primary|primary school|elementary|elementary school/"
    "middle school|lower secondary/secondary|secondary school|high school|upper secondary|hs/"
    "some college/associate|associates|associate degree/college|bachelor|bachelors|"
    "bachelor degree|bachelors degree|undergraduate/master|masters|master degree|masters degree|"
    "graduate|postgraduate/doctorate|doctoral|phd|doctorate degree",
    "worst/worse|much worse/same|about the same|unchanged/better|much better/best",
    "i/ii/iii/iv/v/vi/vii",
    "freshman/sophomore/junior/senior",
    "bronze/silver/gold/platinum",
    "young/middle aged/old|elderly",
    "never smoked|never smoker|non smoker/tried smoking/former smoker|ex smoker/current smoker|"
    "smoker",
    "no time at all/less than an hour a day/few hours a day/most of the day",
)
# Of each: amount; agreement; frequency; quality; severity; satisfaction; importance; education.
GERMAN = (
    "keine|keiner|nein|kein/sehr niedrig|sehr gering/niedrig|gering|tief/mittel|mässig|mäßig/hoch|"
    "gross|groß/sehr hoch",
    "stimme gar nicht zu|stimme überhaupt nicht zu|trifft gar nicht zu|trifft überhaupt nicht zu/"
    "stimme nicht zu|lehne ab|trifft nicht zu|trifft eher nicht zu|stimme eher nicht zu/"
    "neutral|weder noch|teils teils|unentschieden/stimme eher zu|trifft eher zu/"
    "stimme zu|trifft zu/stimme voll zu|stimme voll und ganz zu|trifft voll zu|"
    "trifft voll und ganz zu",
    "nie|niemals/fast nie|sehr selten/selten/gelegentlich|ab und zu/manchmal/oft|häufig/"
    "sehr oft|sehr häufig/meistens/fast immer/immer",
    "ungenügend|sehr schlecht/mangelhaft|schlecht/ausreichend/befriedigend|mittel|mässig|mäßig/gut/"
    "sehr gut/ausgezeichnet",
    "keine|kein/leicht|gering/mittel|mässig|mäßig/schwer|stark/sehr schwer|sehr stark",
    "sehr unzufrieden/unzufrieden|eher unzufrieden/neutral|teils teils/eher zufrieden/zufrieden/"
    "sehr zufrieden",
    "unwichtig|gar nicht wichtig/weniger wichtig|eher unwichtig/eher wichtig/wichtig/sehr wichtig",
    "kein abschluss|ohne abschluss/hauptschule|hauptschulabschluss/realschule|mittlere reife/"
    "abitur|gymnasium/lehre|ausbildung/bachelor/master|diplom/promotion|doktor",
)
FRENCH = (
    "aucun|aucune|non/très faible|très bas/faible|bas/moyen|moyenne|modéré/élevé|élevée|haut|fort/"
    "très élevé|très élevée|très haut|très fort",
    "pas du tout d'accord|tout à fait en désaccord/pas d'accord|plutôt pas d'accord|en désaccord/"
    "neutre|ni d'accord ni pas d'accord|indécis/plutôt d'accord/d'accord/"
    "tout à fait d'accord|fortement d'accord",
    "jamais/presque jamais|très rarement/rarement/occasionnellement/parfois|quelquefois/souvent/"
    "très souvent/presque toujours/toujours",
    "très mauvais|très mauvaise/mauvais|mauvaise/passable|moyen|moyenne/assez bon|assez bien/"
    "bon|bonne|bien/très bon|très bonne|très bien/excellent|excellente",
    "aucun|aucune/léger|légère/modéré|modérée/sévère|grave/très sévère|très grave",
    "très insatisfait|très insatisfaite/insatisfait|insatisfaite|plutôt insatisfait/neutre/"
    "plutôt satisfait/satisfait|satisfaite/très satisfait|très satisfaite",
    "pas important|pas du tout important/peu important/assez important/important/très important",
    "sans diplôme|aucun diplôme/primaire/collège|brevet/lycée|secondaire|bac|baccalauréat/"
    "licence/master|maîtrise/doctorat",
)
SPANISH = (
    "ninguno|ninguna|nada|no/muy bajo|muy baja/bajo|baja/medio|media|moderado/alto|alta/"
    "muy alto|muy alta",
    "totalmente en desacuerdo|muy en desacuerdo/en desacuerdo/neutral|"
    "ni de acuerdo ni en desacuerdo|"
    "indeciso/de acuerdo/totalmente de acuerdo|muy de acuerdo",
    "nunca/casi nunca|muy rara vez/rara vez|raramente/ocasionalmente/a veces|algunas veces/"
    "a menudo|frecuentemente|con frecuencia/muy a menudo/casi siempre/siempre",
    "muy malo|muy mala|pésimo/malo|mala/regular|aceptable/bueno|buena/muy bueno|muy buena/"
    "excelente",
    "ninguno|ninguna/leve|ligero/moderado|moderada/grave|severo|severa/muy grave|muy severo",
    "muy insatisfecho|muy insatisfecha/insatisfecho|insatisfecha/neutral/satisfecho|satisfecha/"
    "muy satisfecho|muy satisfecha",
    "nada importante/poco importante/algo importante/importante/muy importante",
    "sin estudios|ninguno/primaria|primarios/secundaria|secundarios/bachillerato/"
    "universidad|universitaria|grado|licenciatura/máster|maestría/doctorado",
)
PORTUGUESE = (
    "nenhum|nenhuma|não/muito baixo|muito baixa/baixo|baixa/médio|média|moderado/alto|alta/"
    "muito alto|muito alta",
    "discordo totalmente|discordo completamente/discordo|discordo parcialmente/neutro|indiferente|"
    "não concordo nem discordo/concordo parcialmente/concordo/concordo totalmente|"
    "concordo completamente",
    "nunca/quase nunca|muito raramente/raramente/ocasionalmente/às vezes|algumas vezes/"
    "frequentemente|muitas vezes/quase sempre/sempre",
    "péssimo|péssima|muito ruim|muito mau/ruim|mau|má/regular|razoável/bom|boa/"
    "muito bom|muito boa|ótimo|ótima/excelente",
    "nenhum|nenhuma/leve|ligeiro/moderado|moderada/grave|severo|severa/muito grave",
    "muito insatisfeito|muito insatisfeita/insatisfeito|insatisfeita/neutro|indiferente/"
    "satisfeito|satisfeita/muito satisfeito|muito satisfeita",
    "nada importante/pouco importante/importante/muito importante",
    "sem escolaridade|analfabeto/fundamental|ensino fundamental|básico/médio|ensino médio|"
    "secundário/"
    "superior|ensino superior|licenciatura/mestrado/doutorado|doutoramento",
)
ITALIAN = (
    "nessuno|nessuna|no/molto basso|molto bassa/basso|bassa/medio|media|moderato/alto|alta/"
    "molto alto|molto alta",
    "totalmente in disaccordo|molto in disaccordo|per niente d'accordo/in disaccordo|"
    "poco d'accordo/"
    "neutrale|né d'accordo né in disaccordo|indeciso/abbastanza d'accordo/d'accordo/"
    "totalmente d'accordo|molto d'accordo|completamente d'accordo",
    "mai/quasi mai|molto raramente/raramente/occasionalmente/a volte|qualche volta|talvolta/spesso/"
    "molto spesso/quasi sempre/sempre",
    "pessimo|pessima/scarso|scarsa|cattivo|cattiva/insufficiente/sufficiente|discreto/"
    "buono|buona/molto buono|ottimo|ottima/eccellente",
    "nessuno|nessuna/lieve/moderato|moderata/grave|severo|severa/molto grave",
    "molto insoddisfatto|molto insoddisfatta/insoddisfatto|insoddisfatta/neutrale/"
    "soddisfatto|soddisfatta/molto soddisfatto|molto soddisfatta",
    "per niente importante/poco importante/abbastanza importante/importante/molto importante",
    "nessun titolo/elementare|licenza elementare/media|licenza media/diploma|superiori/laurea/"
    "master|laurea magistrale/dottorato",
)
DUTCH = (
    "geen|nee/zeer laag|heel laag/laag/gemiddeld|midden|matig/hoog/zeer hoog|heel hoog",
    "helemaal oneens|zeer oneens|helemaal mee oneens/oneens|mee oneens/neutraal|"
    "niet eens niet oneens/"
    "eens|mee eens/helemaal eens|zeer eens|helemaal mee eens",
    "nooit/bijna nooit|zeer zelden/zelden/af en toe/soms/vaak|regelmatig/zeer vaak|heel vaak/"
    "bijna altijd/altijd",
    "zeer slecht|heel slecht/slecht/matig|redelijk|voldoende/goed/zeer goed|heel goed/uitstekend",
    "geen/licht|mild/matig/ernstig|zwaar/zeer ernstig",
    "zeer ontevreden|heel ontevreden/ontevreden/neutraal/tevreden/zeer tevreden|heel tevreden",
    "onbelangrijk|niet belangrijk/weinig belangrijk/belangrijk/zeer belangrijk|heel belangrijk",
    "geen opleiding/basisschool|basisonderwijs/vmbo|mavo/havo/vwo/mbo/hbo|bachelor/wo|universiteit|"
    "master/doctoraat",
)
YES_NO = (
    "false|no|n|f|off|absent|negative|neg|nein|non|nao|nee",
    "true|yes|y|t|on|present|positive|pos|ja|oui|si|sim",
)
SCALES = (
    *(
        tuple(scale.split("/"))
        for language in (ENGLISH, GERMAN, FRENCH, SPANISH, PORTUGUESE, ITALIAN, DUTCH)
        for scale in language
    ),
    YES_NO,
)
