using System;

namespace GiftCards.Services
{
    public interface IClock
    {
        DateTime Today { get; }
    }

    public class SystemClock : IClock
    {
        public DateTime Today => DateTime.Today;
    }
}
