using Microsoft.AspNetCore.Mvc;

namespace GiftCards.Controllers
{
    [ApiController]
    [Route("cards")]
    public class CardsController : ControllerBase
    {
    }
}
