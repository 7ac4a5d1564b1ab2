using System;
using System.Threading.Tasks;

namespace GiftCards.Tests
{
    public class CardTests
    {
        private readonly Api api;

        public CardTests(Api api) => this.api = api;

        [Fact]
        public async Task RequestsBelowCardsNeedTheKeyOfAShop()
        {
            (await api.Send("POST", "/cards", new { amount = 2000 }, key: null)).IsError(401, "Unknown shop");
            (await api.Send("GET", "/cards/ABCD", key: "key-of-nobody")).IsError(401, "Unknown shop");
            Assert.Equal(200, (await api.Send("GET", "/health", key: null)).Status);
            (await api.Send("GET", "/cards/ABCD", key: "key-of-the-florist")).IsError(404, "Unknown card");
        }

        [Fact]
        public async Task ANewCardIsGoodForThreeYearsAfterTheYearOfItsIssue()
        {
            var reply = await api.Send("POST", "/cards", new { amount = 2500 });
            Assert.Equal(201, reply.Status);
            var code = reply.Json.GetProperty("code").GetString();
            Assert.Equal(14, code.Length);
            Assert.Equal($"/cards/{code}", reply.Location);
            Assert.Equal(2500, reply.Json.GetProperty("balance").GetInt32());
            Assert.Equal("2029-12-31", reply.Json.GetProperty("expiresOn").GetString());
            Assert.Equal(true, reply.Json.GetProperty("active").GetBoolean());
            var found = await api.Send("GET", $"/cards/{code}");
            Assert.Equal(200, found.Status);
            Assert.Equal(reply.Text, found.Text);
        }

        [Fact]
        public async Task AnAmountIsWholeEurosWithinTheLimits()
        {
            foreach (var amount in new[] { 0, -1000, 900, 1050, 50100 })
            {
                (await api.Send("POST", "/cards", new { amount })).IsError(400, "Invalid amount");
            }
            (await api.Send("POST", "/cards", new { })).IsError(400, "Invalid amount");
            await api.Issue(1000);
            await api.Issue(50000);
        }

        [Fact]
        public async Task ACodeIsFoundHoweverItIsTyped()
        {
            var code = await api.Issue(3000);
            foreach (var typed in new[] { code.ToLower(), code.Replace("-", ""), " " + code.Replace("-", " ") + " " })
            {
                var reply = await api.Send("GET", "/cards/" + Uri.EscapeDataString(typed));
                Assert.Equal(200, reply.Status);
                Assert.Equal(code, reply.Json.GetProperty("code").GetString());
            }
            (await api.Send("GET", "/cards/" + code.Substring(1))).IsError(404, "Unknown card");
            (await api.Redeem("ABCD", "", 100)).IsError(404, "Unknown card");
        }
    }
}
