using System;
using System.Threading.Tasks;

namespace GiftCards.Tests
{
    public class RedemptionTests
    {
        private readonly Api api;

        public RedemptionTests(Api api) => this.api = api;

        [Fact]
        public async Task ARedemptionLowersTheBalanceWhereThereIsEnough()
        {
            var code = await api.Issue(3000);
            var reply = await api.Redeem(code, "B-1", 1200);
            Assert.Equal(201, reply.Status);
            Assert.Equal("B-1", reply.Json.GetProperty("order").GetString());
            Assert.Equal(1200, reply.Json.GetProperty("amount").GetInt32());
            Assert.Equal(1800, reply.Json.GetProperty("balance").GetInt32());
            (await api.Redeem(code, "B-2", 1801)).IsError(422, "Insufficient balance");
            (await api.Redeem(code, " ", 100)).IsError(400, "Invalid redemption");
            (await api.Redeem(code, "B-3", 0)).IsError(400, "Invalid redemption");
            Assert.Equal(1800, await api.Balance(code));
            Assert.Equal(201, (await api.Redeem(code, "B-2", 1800)).Status);
            Assert.Equal(0, await api.Balance(code));
        }

        [Fact]
        public async Task AnOrderIsChargedOnceHoweverOftenItIsSent()
        {
            var code = await api.Issue(3000);
            var first = await api.Redeem(code, "B-1", 2000);
            await api.Redeem(code, "B-2", 500);
            var again = await api.Redeem(code, "B-1", 2000);
            Assert.Equal(200, again.Status);
            Assert.Equal(first.Text, again.Text);
            (await api.Redeem(code, "B-1", 1900)).IsError(409, "Order has another amount");
            Assert.Equal(500, await api.Balance(code));
            Assert.Equal(201, (await api.Redeem(code, "B-1", 400, "key-of-the-florist")).Status);
            Assert.Equal(100, await api.Balance(code));
        }

        [Fact]
        public async Task ACardEndsAfterItsLastDay()
        {
            var code = await api.Issue(3000);
            api.Today = new DateTime(2029, 12, 31);
            Assert.Equal(201, (await api.Redeem(code, "B-1", 1000)).Status);
            api.Today = new DateTime(2030, 1, 1);
            (await api.Redeem(code, "B-2", 1000)).IsError(410, "Card expired");
            Assert.Equal(200, (await api.Redeem(code, "B-1", 1000)).Status);
            Assert.Equal(false, (await api.Send("GET", $"/cards/{code}")).Json.GetProperty("active").GetBoolean());
            Assert.Equal(2000, await api.Balance(code));
        }

        [Fact]
        public async Task AShopRefundsItsOwnOrdersOnly()
        {
            var code = await api.Issue(3000);
            await api.Redeem(code, "B-1", 2000);
            var path = $"/cards/{code}/redemptions/B-1";
            (await api.Send("DELETE", path, key: "key-of-the-florist")).IsError(404, "Unknown redemption");
            Assert.Equal(1000, await api.Balance(code));
            var reply = await api.Send("DELETE", path);
            Assert.Equal(204, reply.Status);
            Assert.Equal("", reply.Text);
            Assert.Equal(3000, await api.Balance(code));
            (await api.Send("DELETE", path)).IsError(404, "Unknown redemption");
            Assert.Equal(201, (await api.Redeem(code, "B-1", 2500)).Status);
            Assert.Equal(500, await api.Balance(code));
            Assert.Equal(204, (await api.Send("DELETE", path)).Status);
        }
    }
}
