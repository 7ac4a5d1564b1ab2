using System;
using System.Collections.Generic;

namespace GiftCards.Models
{
    public class Card
    {
        public string Code { get; set; }

        /// <summary>In cents.</summary>
        public int Balance { get; set; }

        /// <summary>The last day on which the card can be used.</summary>
        public DateTime ExpiresOn { get; set; }

        /// <summary>All that happened to the card, oldest first.</summary>
        public List<Entry> Entries { get; } = new List<Entry>();
    }

    public enum EntryType
    {
        Issue,
        Redemption,
        Refund,
    }

    /// <summary>A change of a card's balance.</summary>
    public class Entry
    {
        public EntryType Type { get; set; }

        public string Shop { get; set; }

        /// <summary>The number of the shop's order; null for an issue.</summary>
        public string Order { get; set; }

        /// <summary>In cents, never negative.</summary>
        public int Amount { get; set; }

        /// <summary>The card's balance after it, in cents.</summary>
        public int Balance { get; set; }
    }
}
