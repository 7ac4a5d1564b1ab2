using System;
using System.Linq;
using GiftCards.Models;

namespace GiftCards.Services
{
    /// <summary>The rules for cards. Its errors are CardExceptions.</summary>
    public class CardService
    {
        private readonly CardStore store;
        private readonly IClock clock;
        private readonly object gate = new object();

        public CardService(CardStore store, IClock clock)
        {
            this.store = store;
            this.clock = clock;
        }

        public Card Issue(string shop, int amount)
        {
            if (amount < 1000 || amount > 50000 || amount % 100 != 0)
            {
                throw new CardException(400, "Invalid amount");
            }
            lock (gate)
            {
                var card = new Card
                {
                    Code = store.NextCode(),
                    ExpiresOn = new DateTime(clock.Today.Year + 3, 12, 31),
                };
                Record(card, EntryType.Issue, shop, null, amount);
                store.Add(card);
                return card;
            }
        }

        public Card Find(string code)
        {
            var letters = code.Replace("-", "").Replace(" ", "").ToUpperInvariant();
            lock (gate)
            {
                var card = letters.Length == 12
                    ? store.Find($"{letters[..4]}-{letters[4..8]}-{letters[8..]}")
                    : null;
                return card ?? throw new CardException(404, "Unknown card");
            }
        }

        public bool IsActive(Card card) => clock.Today <= card.ExpiresOn;

        /// <summary>The redemption, and whether it was made by this call.</summary>
        public (Entry Entry, bool IsNew) Redeem(string shop, string code, string order, int amount)
        {
            var card = Find(code);
            if (string.IsNullOrWhiteSpace(order) || amount <= 0)
            {
                throw new CardException(400, "Invalid redemption");
            }
            lock (gate)
            {
                var known = Redemption(card, shop, order);
                if (known != null)
                {
                    return known.Amount == amount
                        ? (known, false)
                        : throw new CardException(409, "Order has another amount");
                }
                if (!IsActive(card))
                {
                    throw new CardException(410, "Card expired");
                }
                if (amount > card.Balance)
                {
                    throw new CardException(422, "Insufficient balance");
                }
                return (Record(card, EntryType.Redemption, shop, order, amount), true);
            }
        }

        public void Refund(string shop, string code, string order)
        {
            var card = Find(code);
            lock (gate)
            {
                var known = Redemption(card, shop, order)
                    ?? throw new CardException(404, "Unknown redemption");
                Record(card, EntryType.Refund, shop, order, known.Amount);
            }
        }

        /// <summary>The redemption of an order that was not refunded since; null if there is none.</summary>
        private static Entry Redemption(Card card, string shop, string order)
        {
            var last = card.Entries.LastOrDefault(entry => entry.Shop == shop && entry.Order == order);
            return last?.Type == EntryType.Redemption ? last : null;
        }

        private static Entry Record(Card card, EntryType type, string shop, string order, int amount)
        {
            card.Balance += type == EntryType.Redemption ? -amount : amount;
            var entry = new Entry { Type = type, Shop = shop, Order = order, Amount = amount, Balance = card.Balance };
            card.Entries.Add(entry);
            return entry;
        }
    }
}
