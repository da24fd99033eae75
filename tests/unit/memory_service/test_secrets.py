"""What counts as a secret, and what only looks like one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.domain.secrets import holds_secret

KEY = "A1b2C3d4E5f6G7h8I9j0"

SECRETS = [
    f"my key is sk-{KEY}",
    f"sk-proj-{KEY}_{KEY}",
    f"STRIPE=sk_live_{KEY}",
    "AKIAIOSFODNN7EXAMPLE",
    f"密钥sk-{KEY}",
    f"ghp_{KEY}{KEY}",
    f"github_pat_{KEY}{KEY}",
    f"glpat-{KEY}",
    "xoxb-123456789012-abcdef",
    f"AIza{KEY}{KEY}",
    f"hf_{KEY}{KEY}",
    f"SG.{KEY}.{KEY}",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc123",
    f"Authorization: Bearer {KEY}",
    "postgres://ann:hunter2@db.example.com/app",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
    "-----BEGIN PRIVATE KEY-----",
    "Remember that my wifi password is correct horse battery staple",
    "Remember my passphrase: correct horse battery staple",
    "Remember that my bank PIN is one two three four",
    "Remember my login: bob / hunter2",
    "login with user bob and pass s3cr3tZebra",
    "记住密码 qwerty",
    "记住我的wifi密码是 小猫咪很可爱",
    "记住我的支付密码是八八六六",
    "my card 4111.1111.1111.1111",
    "my card 4111_1111_1111_1111",
    "My passport number is X1234567",
    "我的护照号是E12345678",
    "my password is hunter2",
    "My Netflix password is swordfish.",
    "MY PASSWORD IS HUNTER2",
    "my password’s hunter2",
    "the password for the router is guest1234!",
    "remember my password: correcthorse",
    'the passphrase is "open sesame"',
    "pwd=s3cr3t!",
    "I changed my password to Summer2024!",
    "login ann, password hunter22",
    "my password is 482913",
    "my password is 123",
    "api key: 9f8e7d6c5b4a",
    "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG",
    "client_secret=abcdef123",
    "my seed phrase is apple banana cherry",
    "my pin is 4821",
    "PIN code: 0000",
    "my bank card's pin number is 1234",
    "the pin for my phone is 998877",
    "the alarm code is 7741",
    "cvv 123",
    "my SSN is 123-45-6789",
    "social security number 123 45 6789",
    "my card is 4111 1111 1111 1111",
    "4111-1111-1111-1111 12/27",
    "card 5555555555554444 exp 12 27",
    "378282246310005",
    "30569309025904",
    "3530111333300000",
    "6011111111111117",
    "银行卡号6222021001112223331",
    "4111\u200b111111111111",
    "４１１１１１１１１１１１１１１１",
    "my IBAN is DE89 3704 0044 0532 0130 00",
    "GB82WEST12345698765432",
    "我的身份证号是11010519491231002X",
    "身份证11010519491231002x，别告诉别人",
    "我的密码是hunter2",
    "银行卡密码123456",
    "wifi密码：12345678",
    "我的邮箱密码改成Abc999了",
    "我的密碼是abcd1234",
    "支付密码是 ８８８８８８",
    "验证码是 302918",
    "口令是“芝麻开门”",
    "PIN码是4821",
]

NO_SECRETS = [
    "",
    "I forgot my password",
    "my password is too long",
    "my password is hard to remember",
    "my wifi password is working again today",
    "the password is something you should change now",
    "I pass level 5 every time",
    "my login is ann",
    "密码是什么都可以",
    "我的密码是随机生成的",
    "密码是必须的",
    "my passport is red",
    "code one is the best",
    "my password is really weak",
    "my password is expired, what now?",
    "the password is required",
    "your password must be 12 characters",
    "my password is 12 characters long",
    "the password is 16-digit",
    "I use a password manager",
    "I keep my passwords in 1Password",
    "how do I change my password to something better?",
    "I pinned the note",
    "pin 12 is ground",
    "PIN 13 on the board",
    "my phone number is 13800138000",
    "call me at +49 151 1234 5678",
    "call +4111111111111111",
    "+1 (415) 555-2671",
    "my order number is 2024051712345678",
    "order 1234567890123456",
    "4111 1111 1111 1112",
    "4111111111111111111111111",
    "born on 1990-01-02, married 2015-06-07",
    "2024-03-10 23:30",
    "the tracking number is 9400110200881234567890",
    "ISBN 978-3-16-148410-0",
    "commit 28acfc3d4591bed50be8a3cdf3ccf4958",
    "I'm allergic to peanuts",
    "the bearer of bad news",
    "tokens are cheap",
    "a JWT starts with eyJ",
    "DE89 3704 0044 0532 0130 01",
    "US GDP 2024",
    "11010519491231002X0",
    "110105194912310021",
    "110105199913310028",
    "see https://example.com:8080/path@v1",
    "我忘了密码",
    "密码是什么？",
    "密码是8位数",
    "密码至少要16位",
    "密码2024年改过",
    "我的手机号是13800138000",
    "订单号20240517123456789",
    "我对花生过敏",
    "别用密码学的术语",
    "我喜欢 password 这个游戏",
]


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_is_seen(text: str) -> None:
    assert holds_secret(text)


@pytest.mark.parametrize("text", NO_SECRETS)
def test_what_only_looks_like_a_secret_is_none(text: str) -> None:
    assert not holds_secret(text)


@given(st.text(st.characters()))
def test_any_text_can_be_asked(text: str) -> None:
    assert holds_secret(text) in {True, False}


@given(st.text(), st.text())
def test_a_secret_is_seen_whatever_stands_around_it(before: str, after: str) -> None:
    assert holds_secret(f"{before} my card: 4111 1111 1111 1111, {after}")
