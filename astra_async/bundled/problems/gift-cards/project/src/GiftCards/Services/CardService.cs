using System;
using GiftCards.Models;

namespace GiftCards.Services
{
    /// <summary>The rules for cards. Its errors are CardExceptions.</summary>
    public class CardService
    {
        public Card Issue(string shop, int amount) => throw new NotImplementedException();

        public Card Find(string code) => throw new NotImplementedException();

        public bool IsActive(Card card) => throw new NotImplementedException();

        /// <summary>The redemption, and whether it was made by this call.</summary>
        public (Entry Entry, bool IsNew) Redeem(string shop, string code, string order, int amount) =>
            throw new NotImplementedException();

        public void Refund(string shop, string code, string order) => throw new NotImplementedException();
    }
}
