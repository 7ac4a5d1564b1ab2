using System;
using System.Collections.Generic;
using GiftCards.Models;

namespace GiftCards.Services
{
    /// <summary>All cards, by their codes as they are printed: `K7PM-3XQA-9TNB`.</summary>
    public class CardStore
    {
        private const string Letters = "ABCDEFGHJKMNPQRSTUVWXYZ23456789";
        private readonly Dictionary<string, Card> cards = new Dictionary<string, Card>();
        private readonly Random random = new Random();

        /// <summary>The card with exactly this code; null if there is none.</summary>
        public Card Find(string code) => cards.TryGetValue(code, out var card) ? card : null;

        public void Add(Card card) => cards.Add(card.Code, card);

        /// <summary>A code that no card has.</summary>
        public string NextCode()
        {
            string code;
            do
            {
                code = $"{Four()}-{Four()}-{Four()}";
            }
            while (cards.ContainsKey(code));
            return code;
        }

        private string Four()
        {
            var letters = new char[4];
            for (var index = 0; index < letters.Length; index++)
            {
                letters[index] = Letters[random.Next(Letters.Length)];
            }
            return new string(letters);
        }
    }
}
