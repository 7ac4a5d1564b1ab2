namespace GiftCards.Models
{
    public class IssueRequest
    {
        public int Amount { get; set; }
    }

    public class RedemptionRequest
    {
        public string Order { get; set; }

        public int Amount { get; set; }
    }
}
