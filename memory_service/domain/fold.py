"""Text as rules compare it: one spelling for what is written in several ways.

Each character stays one character, so that a place in the folded text is a place in the text.
"""

_TRADITIONAL = (
    "愛歡對過記憶請說講話裡這個為應該給從來麼嗎們沒討厭覺聽間關號後週禮點兩歲學習業導語體寫讀"
    "會開車買貓養魚雞豬麥飯藥醫師護員設計議當機場飛還別須總絕動換離結報稱複覆輯幫錯誰現實發絡"
    "輕無聲質畫電視劇專長題問訂購錄認識許讓證據門謝親媽爺兒傳統簡條項標籤圖網詞譯"
)
_SIMPLIFIED = (
    "爱欢对过记忆请说讲话里这个为应该给从来么吗们没讨厌觉听间关号后周礼点两岁学习业导语体写读"
    "会开车买猫养鱼鸡猪麦饭药医师护员设计议当机场飞还别须总绝动换离结报称复复辑帮错谁现实发络"
    "轻无声质画电视剧专长题问订购录认识许让证据门谢亲妈爷儿传统简条项标签图网词译"
)
_SAME = str.maketrans(
    {
        **dict(zip(_TRADITIONAL, _SIMPLIFIED, strict=True)),
        **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full-width ASCII
        **dict.fromkeys("\u2018\u2019\u02bc\u00b4`", "'"),
        **dict.fromkeys("\u201c\u201d\u300c\u300d\u300e\u300f\u00ab\u00bb\u201e", '"'),
        **dict.fromkeys("\u00a0\u3000\t\u200b\u2060\ufeff", " "),
        **dict.fromkeys("\u2013\u2014", "-"),
        "。": ".",
        "、": ",",
        "…": ".",
    }
)


def fold(text: str) -> str:
    """Give text in lower case, simplified Chinese and ASCII punctuation, of the same length."""
    plain = text.translate(_SAME)
    lower = plain.lower()
    if len(lower) == len(plain):
        return lower
    return "".join(each if len(each.lower()) > 1 else each.lower() for each in plain)
