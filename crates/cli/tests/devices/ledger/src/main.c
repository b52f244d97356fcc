#include <tenure.h>

/* What a customer has. */
struct account {
    int balance;
    unsigned char open;
    const char *owner;
};

enum kind { DEPOSIT, WITHDRAWAL };

static struct account accounts[3] = {
    { 100, 1, "anna" },
    { 50, 1, "ben" },
    { 7, 1, "carl" },
};
static int divisor = 4;

static void book(struct account *account, enum kind kind, int amount) {
    if (kind == WITHDRAWAL) amount = -amount;
    account->balance += amount;
}

static void close_account(int number) {
    accounts[number].open = 0;
    divisor = number - 2;
}

static int share(int number) {
    return accounts[number].balance / divisor;
}

static int worth(struct account account) {
    return account.open ? account.balance : 0;
}

TENURE_EXPORT(work) {
    for (int round = 0; round < 3; round++) {
        book(&accounts[round], round == 1 ? WITHDRAWAL : DEPOSIT, 10 + round);
        if (round == 2) close_account(round);
    }
    tenure_info("booked, anna has %d", worth(accounts[0]));
    int each = share(0);
    tenure_info("each has %d", each);
}
