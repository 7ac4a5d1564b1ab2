using System;

namespace GiftCards.Services
{
    /// <summary>A request that the rules refuse: the status of the response, and its error text.</summary>
    public class CardException : Exception
    {
        public CardException(int status, string message)
            : base(message)
        {
            Status = status;
        }

        public int Status { get; }
    }
}
