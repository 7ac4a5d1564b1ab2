using System.Collections.Generic;

namespace GiftCards.Services
{
    /// <summary>The shops of the street, by the keys that their tills send.</summary>
    public class ShopKeys
    {
        private static readonly Dictionary<string, string> Shops = new Dictionary<string, string>
        {
            ["key-of-the-bookshop"] = "bookshop",
            ["key-of-the-florist"] = "florist",
        };

        /// <summary>The name of the shop with this key; null if there is none.</summary>
        public string ShopOf(string key) => key != null && Shops.TryGetValue(key, out var shop) ? shop : null;
    }
}
