using System;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Threading.Tasks;
using System.Xml.Linq;

namespace GiftCards.Tests
{
    [AttributeUsage(AttributeTargets.Method)]
    public class FactAttribute : Attribute
    {
    }

    /// <summary>Runs every [Fact], each on an object of its own, and writes a report in JUnit's format.</summary>
    public static class Runner
    {
        private static readonly TimeSpan Limit = TimeSpan.FromSeconds(20);

        public static async Task<int> Main(string[] args)
        {
            var tests = from type in Assembly.GetExecutingAssembly().GetTypes()
                        from method in type.GetMethods()
                        where method.GetCustomAttribute<FactAttribute>() != null
                        orderby type.Name, method.MetadataToken
                        select method;
            var suite = new XElement("testsuite", new XAttribute("name", "GiftCards.Tests"));
            foreach (var test in tests)
            {
                suite.Add(await Run(test));
            }
            var failed = suite.Descendants("failure").Count();
            suite.Add(new XAttribute("tests", suite.Elements().Count()), new XAttribute("failures", failed));
            Directory.CreateDirectory(Path.GetDirectoryName(Path.GetFullPath(args[0])));
            new XElement("testsuites", suite).Save(args[0]);
            Console.WriteLine($"{suite.Elements().Count()} tests, {failed} failed");
            return failed == 0 ? 0 : 1;
        }

        private static async Task<XElement> Run(MethodInfo test)
        {
            var time = Stopwatch.StartNew();
            var found = new XElement(
                "testcase",
                new XAttribute("classname", test.DeclaringType.FullName),
                new XAttribute("name", test.Name));
            try
            {
                using var api = await Api.Start();
                var instance = Activator.CreateInstance(test.DeclaringType, api);
                var running = (Task)test.Invoke(instance, null);
                if (await Task.WhenAny(running, Task.Delay(Limit)) != running)
                {
                    throw new TimeoutException($"no end within {Limit.TotalSeconds} seconds");
                }
                await running;
                Console.WriteLine($"passed {test.Name}");
            }
            catch (Exception error)
            {
                Console.WriteLine($"FAILED {test.Name}: {error.Message}");
                found.Add(new XElement("failure", new XAttribute("message", error.Message), error.ToString()));
            }
            found.Add(new XAttribute("time", time.Elapsed.TotalSeconds.ToString("0.000")));
            return found;
        }
    }
}
