require "rails_helper"

RSpec.describe "Applications" do
  let(:bob) { User.create!(name: "Bob", role: "seeker") }
  let(:letter) { "I have joined steel for years." }
  let(:bytes) { "%PDF-1.7\n\x00\xFFAda's life\n".b }
  let!(:job) do
    Job.create!(title: "Welder", company: "Iron & Co", location: "Leeds", description: "Steel", user_id: grace.id)
  end

  def cv(content, name = "ada.pdf", type = "application/pdf")
    Rack::Test::UploadedFile.new(StringIO.new(content), type, true, original_filename: name)
  end

  def apply(user, fields, job_id = job.id)
    post "/jobs/#{job_id}/applications", params: fields, headers: user ? as(user) : {}
  end

  it "are stored with the CV and answered with job and applicant" do
    apply(ada, cover_letter: letter, cv: cv(bytes))
    expect(answer).to eq(
      [201, { "id" => JobApplication.last&.id, "cover_letter" => letter,
              "cv" => { "name" => "ada.pdf", "size" => bytes.bytesize },
              "job" => { "id" => job.id, "title" => "Welder", "company" => "Iron & Co" },
              "applicant" => { "id" => ada.id, "name" => "Ada" } }]
    )
    expect(JobApplication.last.cv.b).to eq(bytes)
  end

  it "are refused with a CV that is missing, no PDF or too large" do
    {
      nil => "can't be blank",
      "ada.pdf" => "can't be blank",
      cv("MZ\x90".b) => "must be a PDF",
      cv("notes about %PDF-1.7") => "must be a PDF",
      cv(bytes, "ada.exe") => "must be a PDF",
      cv(bytes.ljust(1_048_577, "x")) => "is too large"
    }.each do |file, message|
      apply(ada, { cover_letter: letter, cv: file }.compact)
      expect(answer).to eq([422, { "errors" => { "cv" => [message] } }])
    end
    expect(JobApplication.count).to eq(0)
    apply(ada, cover_letter: letter, cv: cv(bytes.ljust(1_048_576, "x"), "ADA.PDF", "text/plain"))
    expect([response.status, answer.last.dig("cv", "size")]).to eq([201, 1_048_576])
  end

  it "come from seekers, with a letter, once for a job" do
    apply(nil, cover_letter: letter, cv: cv(bytes))
    expect(answer).to eq([401, { "error" => "Unauthorized" }])
    apply(grace, cover_letter: letter, cv: cv(bytes))
    expect(answer).to eq([403, { "error" => "Forbidden" }])
    apply(ada, { cover_letter: letter, cv: cv(bytes) }, job.id + 1)
    expect(answer).to eq([404, { "error" => "Not found" }])
    apply(ada, cover_letter: "  ", cv: cv(bytes))
    expect(answer).to eq([422, { "errors" => { "cover_letter" => ["can't be blank"] } }])
    [[ada, 201], [ada, 409], [bob, 201]].each do |seeker, status|
      apply(seeker, cover_letter: letter, cv: cv(bytes))
      expect(response).to have_http_status(status)
    end
    expect(JobApplication.pluck(:user_id)).to eq([ada.id, bob.id])
  end
end
