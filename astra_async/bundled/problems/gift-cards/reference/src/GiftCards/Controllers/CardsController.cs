using GiftCards.Models;
using GiftCards.Services;
using Microsoft.AspNetCore.Mvc;
using Microsoft.AspNetCore.Mvc.Filters;

namespace GiftCards.Controllers
{
    [ApiController]
    [Route("cards")]
    public class CardsController : ControllerBase, IActionFilter
    {
        private readonly CardService cards;
        private readonly ShopKeys keys;
        private string shop;

        public CardsController(CardService cards, ShopKeys keys)
        {
            this.cards = cards;
            this.keys = keys;
        }

        [HttpPost]
        public IActionResult Issue(IssueRequest request)
        {
            var card = cards.Issue(shop, request.Amount);
            return Created($"/cards/{card.Code}", Shown(card));
        }

        [HttpGet("{code}")]
        public IActionResult Get(string code) => Ok(Shown(cards.Find(code)));

        [HttpPost("{code}/redemptions")]
        public IActionResult Redeem(string code, RedemptionRequest request)
        {
            var (entry, isNew) = cards.Redeem(shop, code, request.Order, request.Amount);
            return StatusCode(isNew ? 201 : 200, new { entry.Order, entry.Amount, entry.Balance });
        }

        [HttpDelete("{code}/redemptions/{order}")]
        public IActionResult Refund(string code, string order)
        {
            cards.Refund(shop, code, order);
            return NoContent();
        }

        [NonAction]
        public void OnActionExecuting(ActionExecutingContext context)
        {
            shop = keys.ShopOf(Request.Headers["X-Api-Key"]);
            if (shop == null)
            {
                context.Result = Error(401, "Unknown shop");
            }
        }

        [NonAction]
        public void OnActionExecuted(ActionExecutedContext context)
        {
            if (context.Exception is CardException error)
            {
                context.Result = Error(error.Status, error.Message);
                context.ExceptionHandled = true;
            }
        }

        private static ObjectResult Error(int status, string message) =>
            new ObjectResult(new { error = message }) { StatusCode = status };

        private object Shown(Card card) => new
        {
            card.Code,
            card.Balance,
            ExpiresOn = card.ExpiresOn.ToString("yyyy-MM-dd"),
            Active = cards.IsActive(card),
        };
    }
}
