"""How private a statement is."""

import re

from memory_service.domain.fold import fold

_INTIMATE = re.compile(
    r"\b(?:gay|lesbian|bisexual|transgender|homosexual|straight man|sexual\w*|sex life|asexual|"
    r"queer|"
    r"hiv|aids|abortion|miscarriage|suicid\w*|self-harm\w*|rap(?:ed|ist)|abused?|addict\w*|rehab|"
    r"christian|catholic|protestant|muslim|jew|jewish|hindu|buddhist|sikh|atheist|mormon|orthodox|"
    r"god|church|mosque|synagogue|pray(?:er)?|my religion|my faith|"
    r"democrats?|republicans?|conservatives?|liberals?|socialist|communist|tor(?:y|ies)|"
    r"labour party|"
    r"i vote[ds]?|voted for|union member|undocumented|illegal immigrant|asylum|prison|convicted|"
    r"criminal record|arrested|my ethnicity|my race)\b"
    r"|同性恋|双性恋|异性恋|跨性别|出柜|性取向|性生活|艾滋|堕胎|流产|自杀|自残|吸毒|戒毒|酗酒|家暴|性侵|"
    r"基督[教徒]|天主教|穆斯林|伊斯兰教|佛教|信佛|道教|犹太|信教|信仰|教徒|无神论|教堂|清真寺|"
    r"党员|入党|政治立场|投票给|民主党|共和党|国民党|共产党|工会|坐牢|犯罪记录|前科|被捕|难民|民族是"
)
_PRIVATE = re.compile(
    r"\b(?:diabet\w*|cancer|depress\w*|anxiety|adhd|autis\w*|bipolar|schizo\w*|epilep\w*|asthma\w*|"
    r"diagnos\w*|disorder|disease|chronic|pregnan\w*|ivf|therap(?:y|ist)|psychiatrist|"
    r"antidepressants?|"
    r"medications?|insulin|pills?|tumou?r|stroke|heart attack|blood pressure|surgery|disabled|"
    r"disability|salary|income|i earn|i make \$?[0-9]|debts?|mortgage|loan|bankrupt\w*|net worth|"
    r"savings|bank account|credit score|passport number|divorc\w*|affair|[0-9]{1,5} ?mg)\b|"
    r"[$€£][0-9]"
    r"|糖尿病|癌|抑郁|焦虑症|多动症|自闭|躁郁|精神分裂|癫痫|哮喘|确诊|患有|慢性病|怀孕|孕妇|备孕|试管|心理医生|"
    r"心理咨询|抗抑郁|吃药|服药|药物|降压药|胰岛素|肿瘤|中风|高血压|心脏病|手术|残疾|工资|月薪|年薪|收入|欠债|"
    r"欠款|负债|房贷|贷款|破产|存款|银行账户|信用分|离婚|离异|出轨"
)


def sensitivity_level(content: str) -> int:
    """Give 2 for sexuality, faith, politics and the like, 1 for health and money, else 0.

    What people tell an assistant so that it heeds it, allergies and diets, has no level of its own.
    """
    folded = fold(content)
    if _INTIMATE.search(folded):
        return 2
    return 1 if _PRIVATE.search(folded) else 0
