using System;
using System.Linq;
using System.Net.Http;
using System.Text;
using System.Text.Json;
using System.Threading.Tasks;
using GiftCards.Services;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;

namespace GiftCards.Tests
{
    /// <summary>The application on a free port, and its clock.</summary>
    public sealed class Api : IClock, IDisposable
    {
        private IHost host;
        private HttpClient client;

        public DateTime Today { get; set; } = new DateTime(2026, 6, 1);

        public static async Task<Api> Start()
        {
            var api = new Api();
            api.host = Program.CreateHostBuilder(Array.Empty<string>())
                .ConfigureLogging(logging => logging.ClearProviders())
                .ConfigureWebHost(web => web
                    .UseUrls("http://127.0.0.1:0")
                    .ConfigureServices(services => services.AddSingleton<IClock>(api)))
                .Build();
            await api.host.StartAsync();
            var server = api.host.Services.GetRequiredService<IServer>();
            var address = server.Features.Get<IServerAddressesFeature>().Addresses.Single();
            api.client = new HttpClient { BaseAddress = new Uri(address) };
            return api;
        }

        /// <summary>The status of the response and its body as JSON, undefined where it has none.</summary>
        public async Task<Reply> Send(
            string method, string path, object body = null, string key = "key-of-the-bookshop")
        {
            using var request = new HttpRequestMessage(new HttpMethod(method), path);
            if (key != null)
            {
                request.Headers.Add("X-Api-Key", key);
            }
            if (body != null)
            {
                var json = JsonSerializer.Serialize(body);
                request.Content = new StringContent(json, Encoding.UTF8, "application/json");
            }
            using var response = await client.SendAsync(request);
            var text = await response.Content.ReadAsStringAsync();
            return new Reply
            {
                Status = (int)response.StatusCode,
                Location = response.Headers.Location?.ToString(),
                Text = text,
            };
        }

        /// <summary>The code of a new card.</summary>
        public async Task<string> Issue(int amount)
        {
            var reply = await Send("POST", "/cards", new { amount });
            Assert.Equal(201, reply.Status);
            return reply.Json.GetProperty("code").GetString();
        }

        public Task<Reply> Redeem(string code, string order, int amount, string key = "key-of-the-bookshop") =>
            Send("POST", $"/cards/{code}/redemptions", new { order, amount }, key);

        public async Task<int> Balance(string code) =>
            (await Send("GET", $"/cards/{code}")).Json.GetProperty("balance").GetInt32();

        public void Dispose()
        {
            client?.Dispose();
            host.StopAsync(TimeSpan.FromSeconds(1)).GetAwaiter().GetResult();
            host.Dispose();
        }
    }

    public class Reply
    {
        public int Status { get; set; }

        public string Location { get; set; }

        public string Text { get; set; }

        public JsonElement Json => JsonDocument.Parse(Text).RootElement;

        public void IsError(int status, string error)
        {
            Assert.Equal(status, Status);
            Assert.Equal(error, Json.GetProperty("error").GetString());
        }
    }

    public static class Assert
    {
        public static void Equal<T>(T expected, T actual)
        {
            if (!Equals(expected, actual))
            {
                throw new Exception($"expected {expected}, got {actual}");
            }
        }

        public static void NotEqual<T>(T expected, T actual)
        {
            if (Equals(expected, actual))
            {
                throw new Exception($"expected anything but {expected}");
            }
        }
    }
}
